// GradientSynchronizer: adds up the gradients of all ranks while backward still computes them.
//
//   net->Backward([&](const Parameter& p) { synchronizer.OnReady(p); });    releases full buckets
//   RT_RETURN_IF_ERROR(thread.Wait());                                      grads() are sums now
//
// Sums, not means: the optimizer divides by the number of samples of the whole world, so ranks
// with batches of different sizes count as they should.
// How a bucket is reduced is a function of its own, and may take several collectives.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_DIST_GRADIENTS_GRADIENT_SYNCHRONIZER_H_
#define RINGTAIL_DIST_GRADIENTS_GRADIENT_SYNCHRONIZER_H_

#include <functional>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "dist/gradients/communication_thread.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

class GradientSynchronizer {
 public:
  // Leaves in `gradients`, which are those of bucket `bucket`, the sum over all ranks.
  using Reduce = std::function<Status(Communicator*, size_t bucket, std::span<float> gradients)>;

  // `thread` and `arena` must outlive it.
  GradientSynchronizer(CommunicationThread* thread, const ParameterArena* arena,
                       const BucketOptions& options, Reduce reduce = AllReduceBucket);

  // Once for each parameter of the arena, in its order, when its gradient is final; then anew for
  // the next step, after CommunicationThread::Wait.
  void OnReady(const Parameter& parameter);

  std::span<const GradientBucket> buckets() const { return buckets_; }
  static Status AllReduceBucket(Communicator* ranks, size_t bucket, std::span<float> gradients);

 private:
  CommunicationThread* const thread_;
  const ParameterArena* const arena_;
  const std::vector<GradientBucket> buckets_;
  const Reduce reduce_;
  size_t ready_ = 0;   // parameters of this step
  size_t bucket_ = 0;  // that the next one belongs to
  size_t ready_in_bucket_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_GRADIENTS_GRADIENT_SYNCHRONIZER_H_
