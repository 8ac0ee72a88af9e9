// GradientSynchronizer: releases buckets of gradients to the communication thread while backward
// still computes the next ones.
//
//   net->Backward([&](const Parameter& p) { synchronizer.OnReady(p); });    releases full buckets
//   RT_RETURN_IF_ERROR(thread.WaitFor(synchronizer.job(0)));                bucket 0 is summed now
//   RT_RETURN_IF_ERROR(thread.Wait());                                      grads() are sums now
//
// Sums, not means: the optimizer divides by the number of samples of the whole world, so that a
// rank with a smaller batch counts less. The BucketReducer decides how a bucket is reduced
// (bucket_reducer.h).
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_DIST_GRADIENTS_GRADIENT_SYNCHRONIZER_H_
#define RINGTAIL_DIST_GRADIENTS_GRADIENT_SYNCHRONIZER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "dist/gradients/bucket_reducer.h"
#include "dist/gradients/communication_thread.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

class GradientSynchronizer {
 public:
  // All of them must outlive it. `buckets`: of the arena's gradients, as MakeGradientBuckets makes
  // them.
  GradientSynchronizer(CommunicationThread* thread, const ParameterArena* arena,
                       std::span<const GradientBucket> buckets, BucketReducer* reducer)
      : thread_(thread),
        arena_(arena),
        buckets_(buckets),
        reducer_(reducer),
        jobs_(buckets.size()) {}

  // Called once per parameter and step, in the arena's order, when its gradient is final. The next
  // step may start after CommunicationThread::Wait.
  void OnReady(const Parameter& parameter);
  // The thread's job that reduces a bucket which has been released in this step.
  int64_t job(size_t bucket) const { return jobs_[bucket]; }

 private:
  CommunicationThread* const thread_;
  const ParameterArena* const arena_;
  const std::span<const GradientBucket> buckets_;
  BucketReducer* const reducer_;
  std::vector<int64_t> jobs_;  // by bucket
  size_t ready_ = 0;           // parameters of this step
  size_t bucket_ = 0;          // the one that the next parameter belongs to
  size_t ready_in_bucket_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_GRADIENTS_GRADIENT_SYNCHRONIZER_H_
