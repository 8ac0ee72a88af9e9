// What the arrays of collectives are made of: float (gradients), double and int64_t (sums, counts,
// checks), and bytes, which can be moved but not added. Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COLLECTIVES_ELEMENT_TYPE_H_
#define RINGTAIL_DIST_COLLECTIVES_ELEMENT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringtail {

enum class ElementType { kFloat, kDouble, kInt64, kByte };

template <typename T>
struct ElementTypeOf;
template <>
struct ElementTypeOf<float> {
  static constexpr ElementType kValue = ElementType::kFloat;
};
template <>
struct ElementTypeOf<double> {
  static constexpr ElementType kValue = ElementType::kDouble;
};
template <>
struct ElementTypeOf<int64_t> {
  static constexpr ElementType kValue = ElementType::kInt64;
};
template <>
struct ElementTypeOf<std::byte> {
  static constexpr ElementType kValue = ElementType::kByte;
};

size_t ElementBytes(ElementType type);
std::string_view ElementTypeName(ElementType type);  // "float"

// sum[i] = sum[i] + addend[i] for `bytes` bytes of whole elements. Both are aligned to their
// element and do not overlap. Integers wrap around. Cost: memory-bound.
using AddFunction = void (*)(std::byte* sum, const std::byte* addend, size_t bytes);
// Ends the process for kByte: bytes have no sum.
AddFunction AddFunctionOf(ElementType type);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_ELEMENT_TYPE_H_
