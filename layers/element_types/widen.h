// Blobs from bf16 to f32 and back, and sums of blobs, in parallel.
// Thread-safety: the trainer thread. Cost: a pass over the blob at the speed of memory.
#ifndef RINGTAIL_LAYERS_ELEMENT_TYPES_WIDEN_H_
#define RINGTAIL_LAYERS_ELEMENT_TYPES_WIDEN_H_

#include "layers/blob.h"

namespace ringtail {

// `desc` is of the bf16 blob; the other holds as many floats.
void WidenBlob(const BlobDesc& desc, const float* bf16, float* f32);
void NarrowBlob(const BlobDesc& desc, const float* f32, float* bf16);

// sum += addend; a bf16 sum is rounded once for each addition.
void AddBlob(const BlobDesc& desc, const float* addend, float* sum);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ELEMENT_TYPES_WIDEN_H_
