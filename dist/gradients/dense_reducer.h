// DenseReducer: sums of gradients at full precision, one allreduce per bucket; and, for the noise
// scale (optim/noise_scale.h), the squared norm of what this rank itself contributes.
// Thread-safety: BeginStep and own_squares on the trainer thread while no bucket is under way,
// Reduce on the communication thread.
#ifndef RINGTAIL_DIST_GRADIENTS_DENSE_REDUCER_H_
#define RINGTAIL_DIST_GRADIENTS_DENSE_REDUCER_H_

#include "dist/gradients/bucket_reducer.h"

namespace ringtail {

class DenseReducer : public BucketReducer {
 public:
  // Sets own_squares() to zero. `measures_squares`: whether the buckets of this step are added to
  // it before they are reduced, which costs a pass over them.
  void BeginStep(bool measures_squares);
  Status Reduce(Communicator* ranks, size_t bucket, std::span<float> gradients) override;

  double own_squares() const { return own_squares_; }  // |gradient|^2 of this rank in this step

 private:
  bool measures_squares_ = false;
  double own_squares_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_GRADIENTS_DENSE_REDUCER_H_
