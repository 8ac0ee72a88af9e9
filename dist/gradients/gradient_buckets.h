// Gradient buckets: the gradient block cut into ranges that are sent as soon as backward has
// finished them, while it computes the next ones. (Li et al. 2020, "PyTorch Distributed", 3.2.3.)
//
//   block, as backward writes it      fc.weight .. conv5 .. conv4 .. conv3 .. conv2 .. conv1
//   buckets                           [ 0 ][      1      ][      2      ][     3      ][ 4 ]
//
// A bucket is a range of the block: nothing is copied, and the order is the same on every rank. It
// holds whole parameters, so one may be larger than requested. Large buckets cost fewer messages;
// but the first is small, so that communication starts early, and so is the last, because no
// computation remains to hide it.
// A run makes its buckets once and passes them to everything that needs them.
// Thread-safety: a function without state.
#ifndef RINGTAIL_DIST_GRADIENTS_GRADIENT_BUCKETS_H_
#define RINGTAIL_DIST_GRADIENTS_GRADIENT_BUCKETS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "dist/collectives/plan.h"
#include "dist/dist.pb.h"

namespace ringtail {

struct BucketOptions {
  int64_t bytes = int64_t{8} << 20;      // a bucket is closed once it has at least this many
  int64_t end_bytes = int64_t{1} << 20;  // the same for the first; an upper bound for the last
  bool operator==(const BucketOptions&) const = default;
};
BucketOptions BucketsOf(const DistConfig& config);

struct GradientBucket {
  ElementRange range;     // of the gradient block, gaps included
  size_t parameters = 0;  // number of parameters in it
};

// `parameters` are an arena's, in its order. The ranges follow each other without holes.
std::vector<GradientBucket> MakeGradientBuckets(std::span<const Parameter> parameters,
                                                const BucketOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_GRADIENTS_GRADIENT_BUCKETS_H_
