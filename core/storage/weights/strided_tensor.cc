#include "core/storage/weights/strided_tensor.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace ringtail {
namespace {

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
float FromF16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f, fraction = half & 0x3ff;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
  return FromBits(sign | wide << 23 | fraction << 13);
}

float FromBf16(uint16_t value) { return FromBits(static_cast<uint32_t>(value) << 16); }

template <typename Stored, typename Convert>
void Copy(const StridedTensor& tensor, const Convert& convert, std::span<float> out) {
  std::vector<int64_t> index(tensor.shape.size(), 0);
  int64_t offset = 0;
  for (float& element : out) {
    Stored value;
    std::memcpy(&value, tensor.data.data() + offset * static_cast<int64_t>(sizeof(Stored)),
                sizeof(Stored));
    element = convert(value);
    for (size_t d = index.size(); d-- > 0;) {
      offset += tensor.strides[d];
      if (++index[d] < tensor.shape[d]) break;
      offset -= tensor.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::vector<int64_t> ContiguousStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

bool IsInside(const StridedTensor& tensor) {
  if (tensor.strides.size() != tensor.shape.size()) return false;
  int64_t last = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (tensor.shape[d] < 0 || tensor.strides[d] < 0) return false;
    if (tensor.shape[d] == 0) return true;
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last)) {
      return false;
    }
  }
  return last < static_cast<int64_t>(tensor.data.size()) / DtypeBytes(tensor.dtype);
}

Status ToFloats(const StridedTensor& tensor, std::span<float> out) {
  RT_CHECK(IsInside(tensor) && NumElements(tensor.shape) == std::ssize(out),
           "the tensor must be inside its data, and the floats as many");
  switch (tensor.dtype) {
    case Dtype::kF32:
      Copy<float>(
          tensor, [](float v) { return v; }, out);
      return OkStatus();
    case Dtype::kF64:
      Copy<double>(
          tensor, [](double v) { return static_cast<float>(v); }, out);
      return OkStatus();
    case Dtype::kF16:
      Copy<uint16_t>(tensor, FromF16, out);
      return OkStatus();
    case Dtype::kBF16:
      Copy<uint16_t>(tensor, FromBf16, out);
      return OkStatus();
    case Dtype::kI32:
    case Dtype::kI64:
    case Dtype::kU8:
      break;
  }
  return InvalidArgument(fmt::format("its elements are {}; weights are F64, F32, F16 or BF16",
                                     DtypeName(tensor.dtype)));
}

}  // namespace ringtail
