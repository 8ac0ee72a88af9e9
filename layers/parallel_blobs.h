// How the layers on kernels of our own split a blob among the threads.
// Thread-safety: the trainer thread; fn is called from several threads at once.
#ifndef RINGTAIL_LAYERS_PARALLEL_BLOBS_H_
#define RINGTAIL_LAYERS_PARALLEL_BLOBS_H_

#include <algorithm>
#include <cstdint>

#include "core/parallel_for.h"
#include "layers/blob.h"

namespace ringtail {

inline constexpr int64_t kGrainFloats = 1 << 14;  // below this a thread costs more than it saves

// How many units of work of `floats` floats are worth a thread.
inline int64_t Grain(int64_t floats) { return std::max<int64_t>(1, kGrainFloats / floats); }

// Calls fn(i) for each i of 0 .. N * channel_blocks() - 1: the planes of one channel block of one
// sample, plane() * block adjacent elements.
template <typename Function>
void ForEachChannelBlock(const BlobDesc& desc, const Function& fn) {
  ParallelFor(desc.N * desc.channel_blocks(), Grain(desc.plane() * desc.block),
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) fn(i);
              });
}

// Calls fn(begin, end) for ranges of the blob's elements, padding included.
template <typename Function>
void ForEachElementRange(const BlobDesc& desc, const Function& fn) {
  ParallelFor(desc.elements(), kGrainFloats, fn);
}

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_PARALLEL_BLOBS_H_
