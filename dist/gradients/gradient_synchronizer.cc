#include "dist/gradients/gradient_synchronizer.h"

#include "core/check.h"

namespace ringtail {

void GradientSynchronizer::OnReady(const Parameter& parameter) {
  RT_CHECK(&parameter == &arena_->parameters()[ready_], "backward follows the arena's order");
  ++ready_;
  if (++ready_in_bucket_ < buckets_[bucket_].parameters) return;
  jobs_[bucket_] = thread_->Submit([this, bucket = bucket_](Communicator* ranks) {
    const ElementRange& range = buckets_[bucket].range;
    return reducer_->Reduce(ranks, bucket, arena_->grads().subspan(range.offset, range.count));
  });
  ready_in_bucket_ = 0;
  if (++bucket_ == buckets_.size()) ready_ = bucket_ = 0;
}

}  // namespace ringtail
