#include "dist/collectives/element_type.h"

#include "core/check.h"
#include "core/kernels/add.h"

namespace ringtail {
namespace {

template <typename T>
void Add(std::byte* sum, const std::byte* addend, size_t bytes) {
  auto* __restrict to = reinterpret_cast<T*>(sum);
  const auto* __restrict from = reinterpret_cast<const T*>(addend);
  for (size_t i = 0; i < bytes / sizeof(T); ++i) to[i] += from[i];
}

void AddFloatBytes(std::byte* sum, const std::byte* addend, size_t bytes) {
  RT_KERNEL(AddFloats)
  (reinterpret_cast<const float*>(addend), static_cast<int64_t>(bytes / sizeof(float)),
   reinterpret_cast<float*>(sum));
}

}  // namespace

size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return sizeof(float);
    case ElementType::kDouble:
      return sizeof(double);
    case ElementType::kInt64:
      return sizeof(int64_t);
    case ElementType::kByte:
      return 1;
  }
  RT_CHECK(false, "every type of element has a size");
}

std::string_view ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return "float";
    case ElementType::kDouble:
      return "double";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kByte:
      return "byte";
  }
  RT_CHECK(false, "every type of element has a name");
}

AddFunction AddFunctionOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return AddFloatBytes;
    case ElementType::kDouble:
      return Add<double>;
    case ElementType::kInt64:
      return Add<uint64_t>;  // the same bits, and no undefined overflow
    case ElementType::kByte:
      break;
  }
  RT_CHECK(false, "bytes are moved, never added");
}

}  // namespace ringtail
