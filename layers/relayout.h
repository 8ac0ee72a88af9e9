// Relayout: copies a blob from one channel blocking to another (layers/blob.h), in parallel.
// Padding channels of `to` are written as zeros, those of `from` are not read.
// Thread-safety: the trainer thread. Errors: none. Cost: one read and one write of the blob; plain
// to and from blocks is near memory speed, 8 to and from 16 is a simple loop (no net mixes them).
#ifndef RINGTAIL_LAYERS_RELAYOUT_H_
#define RINGTAIL_LAYERS_RELAYOUT_H_

#include "layers/blob.h"

namespace ringtail {

// `from` and `to` must have the same shape; `src` and `dst` must not overlap.
void Relayout(const BlobDesc& from, const float* src, const BlobDesc& to, float* dst);

// True if both describe the same bytes: equal blocks, or no plane and whole blocks of channels.
bool SameLayout(const BlobDesc& a, const BlobDesc& b);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_RELAYOUT_H_
