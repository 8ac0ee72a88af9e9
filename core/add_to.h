// Sums of whole blocks, by all threads.
// Thread-safety: as ParallelFor (core/parallel_for.h). Cost: reads both blocks, writes one.
#ifndef RINGTAIL_CORE_ADD_TO_H_
#define RINGTAIL_CORE_ADD_TO_H_

#include <span>

namespace ringtail {

// to[i] += from[i]. Of one length; the blocks do not overlap. The same bits on any number of threads.
void AddTo(std::span<const float> from, std::span<float> to);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_ADD_TO_H_
