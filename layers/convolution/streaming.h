// When a convolution writes its result around the caches. Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_CONVOLUTION_STREAMING_H_
#define RINGTAIL_LAYERS_CONVOLUTION_STREAMING_H_

#include <cstdint>

#include "layers/blob.h"

namespace ringtail {

// A result of this size has left the caches before the next layer reads it: it need not enter them.
inline bool IsWorthStreaming(const BlobDesc& result) {
  constexpr int64_t kStreamBytes = 16 << 20;
  return result.bytes() >= kStreamBytes;
}

// Streaming stores want whole registers: a cache line holds the widest.
inline bool CanStreamTo(const float* result) {
  constexpr uintptr_t kLine = 64;
  return reinterpret_cast<uintptr_t>(result) % kLine == 0;
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_CONVOLUTION_STREAMING_H_
