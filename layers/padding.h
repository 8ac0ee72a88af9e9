// Padding channels: in a blocked layout C is rounded up to whole blocks, and what is beyond C is
// zero, in data and in gradients (layers/blob.h). Layers that write channel by channel call this to
// keep it so. Thread-safety: the trainer thread. Cost: writes at most one block of channels per
// sample.
#ifndef RINGTAIL_LAYERS_PADDING_H_
#define RINGTAIL_LAYERS_PADDING_H_

#include "layers/blob.h"

namespace ringtail {

// Writes zeros to the padding channels, if there are any.
void ZeroPaddingChannels(const BlobDesc& desc, float* data);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_PADDING_H_
