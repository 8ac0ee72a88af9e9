// A tensor of a file that others wrote: a view of its bytes, of any floating type, with strides.
// Thread-safety: const.
#ifndef RINGTAIL_CORE_STORAGE_WEIGHTS_STRIDED_TENSOR_H_
#define RINGTAIL_CORE_STORAGE_WEIGHTS_STRIDED_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "core/status.h"
#include "core/storage/safetensors.h"

namespace ringtail {

struct StridedTensor {
  Dtype dtype = Dtype::kF32;
  Shape shape;
  std::vector<int64_t> strides;     // in elements, >= 0; one for each dimension
  std::span<const std::byte> data;  // from the first element on; any alignment
};

// Row-major strides.
std::vector<int64_t> ContiguousStrides(const Shape& shape);
// Whether every element lies inside its data.
bool IsInside(const StridedTensor& tensor);

// Row-major f32 of a tensor that IsInside. F16 and BF16 are exact, F64 is rounded to nearest.
// InvalidArgument for other types. `out` has as many elements. Cost: about 1 ns per element.
Status ToFloats(const StridedTensor& tensor, std::span<float> out);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_WEIGHTS_STRIDED_TENSOR_H_
