#include "dist/gradients/gradient_synchronizer.h"

#include <utility>

#include "core/check.h"

namespace ringtail {

GradientSynchronizer::GradientSynchronizer(CommunicationThread* thread, const ParameterArena* arena,
                                           const BucketOptions& options, Reduce reduce)
    : thread_(thread),
      arena_(arena),
      buckets_(MakeGradientBuckets(arena->parameters(), options)),
      reduce_(std::move(reduce)) {}

void GradientSynchronizer::OnReady(const Parameter& parameter) {
  RT_CHECK(&parameter == &arena_->parameters()[ready_], "backward keeps to the arena's order");
  ++ready_;
  if (++ready_in_bucket_ < buckets_[bucket_].parameters) return;
  thread_->Submit([this, bucket = bucket_](Communicator* ranks) {
    const ElementRange& range = buckets_[bucket].range;
    return reduce_(ranks, bucket, arena_->grads().subspan(range.offset, range.count));
  });
  ready_in_bucket_ = 0;
  if (++bucket_ == buckets_.size()) ready_ = bucket_ = 0;
}

Status GradientSynchronizer::AllReduceBucket(Communicator* ranks, size_t /*bucket*/,
                                             std::span<float> gradients) {
  return ranks->AllReduce(gradients);
}

}  // namespace ringtail
