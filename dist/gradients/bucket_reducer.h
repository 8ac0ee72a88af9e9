// BucketReducer: adds up one bucket of gradients over all ranks.
//
//   GradientSynchronizer | ReduceBuckets
//              `--> BucketReducer::Reduce(bucket 0), (bucket 1), ..
//                       DenseReducer         one allreduce                  (dense_reducer.h)
//                       CompressedReducer    fewer bytes, layer by layer    (dist/compression/)
//
// A reducer may use several collectives for one bucket. Every rank reduces the same buckets in the
// same order and ends with the same bits.
// Thread-safety: one thread at a time (the communication thread).
#ifndef RINGTAIL_DIST_GRADIENTS_BUCKET_REDUCER_H_
#define RINGTAIL_DIST_GRADIENTS_BUCKET_REDUCER_H_

#include <cstddef>
#include <span>

#include "core/parameter.h"
#include "core/status.h"
#include "dist/communicator.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

class BucketReducer {
 public:
  virtual ~BucketReducer() = default;

  // Replaces `gradients`, those of bucket `bucket`, by what stands for their sum over all ranks.
  // Errors: those of the communicator, and of the reducer.
  virtual Status Reduce(Communicator* ranks, size_t bucket, std::span<float> gradients) = 0;
};

// Reduces all buckets of the arena's gradients, one after the other, on the calling thread.
Status ReduceBuckets(Communicator* ranks, const ParameterArena& arena,
                     std::span<const GradientBucket> buckets, BucketReducer* reducer);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_GRADIENTS_BUCKET_REDUCER_H_
