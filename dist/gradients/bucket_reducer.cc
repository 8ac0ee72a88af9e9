#include "dist/gradients/bucket_reducer.h"

namespace ringtail {

Status ReduceBuckets(Communicator* ranks, const ParameterArena& arena,
                     std::span<const GradientBucket> buckets, BucketReducer* reducer) {
  for (size_t i = 0; i < buckets.size(); ++i) {
    const ElementRange& range = buckets[i].range;
    RT_RETURN_IF_ERROR(reducer->Reduce(ranks, i, arena.grads().subspan(range.offset, range.count)));
  }
  return OkStatus();
}

}  // namespace ringtail
