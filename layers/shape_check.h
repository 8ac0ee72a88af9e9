// What layers check of their inputs: limits on sizes, so that no product of dimensions in layers/
// can overflow, numbers and shapes of inputs, and element types.
// Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_SHAPE_CHECK_H_
#define RINGTAIL_LAYERS_SHAPE_CHECK_H_

#include <span>

#include "core/status.h"
#include "layers/blob.h"

namespace ringtail {

inline constexpr int64_t kMaxDimension = int64_t{1} << 31;
inline constexpr int64_t kMaxBlobBytes = int64_t{1} << 40;

// a * b, or kMaxBlobBytes + 1 if that is larger (for 0 <= a, b <= kMaxBlobBytes + 1).
int64_t SaturatingProduct(int64_t a, int64_t b);

// InvalidArgument if a dimension is below 1 or above kMaxDimension, or the whole, in f32, above
// kMaxBlobBytes.
Status CheckBlobSize(const BlobDesc& desc);

// InvalidArgument unless there are `count` inputs.
Status CheckInputCount(size_t actual, size_t count);

// InvalidArgument, with the first that differs, unless all inputs have the shape of input 0.
Status CheckSameShapes(std::span<const BlobDesc> src);

// Ends the process unless all blobs are f32: for Setup of a layer, and for kernels, that read
// floats.
void RequireF32(std::span<const BlobDesc> blobs);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_SHAPE_CHECK_H_
