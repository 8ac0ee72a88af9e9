// Copies of blobs from one layout to another (layers/blob.h), in parallel, and their padding
// channels. Thread-safety: the trainer thread. Cost of a copy: one read and one write of the blob,
// near the speed of memory between plain and blocked; between blocks of 8 and 16 a simple loop (no
// net mixes them). Errors: none. Any type, the same on both sides.
#ifndef RINGTAIL_LAYERS_RELAYOUT_H_
#define RINGTAIL_LAYERS_RELAYOUT_H_

#include "layers/blob.h"

namespace ringtail {

// `from` and `to` must have the same shape; `src` and `dst` must not overlap. Padding channels of
// `to` are written as zeros, those of `from` are not read.
void Relayout(const BlobDesc& from, const float* src, const BlobDesc& to, float* dst);

// The same without a change of layout.
void CopyBlob(const BlobDesc& desc, const float* src, float* dst);

// True if both describe the same bytes: equal blocks, or no plane and whole blocks of channels.
bool SameLayout(const BlobDesc& a, const BlobDesc& b);

// Writes zeros to the padding channels of a blob, if there are any: for layers that write channel
// by channel. Cost: at most one block of channels per sample.
void ZeroPaddingChannels(const BlobDesc& desc, float* data);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_RELAYOUT_H_
