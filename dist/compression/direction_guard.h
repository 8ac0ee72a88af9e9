// DirectionGuard: compares the compressed sum of a layer's gradients with the uncompressed one. If
// they have little in common, compression has lost the direction of the layer.
//
//   step            0          every       2 every     ..
//   guarded bucket  0          1           2           ..     one bucket at a time, in turn
//
// Thread-safety: TakeReadings on the trainer thread while no bucket is under way, the rest on the
// communication thread.
#ifndef RINGTAIL_DIST_COMPRESSION_DIRECTION_GUARD_H_
#define RINGTAIL_DIST_COMPRESSION_DIRECTION_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ringtail {

struct DirectionReading {
  size_t parameter = 0;
  double cosine = 0;    // between the compressed and the uncompressed sum
  double residual = 0;  // L2 norm of this rank's residual, times ranks, over that of the sum
};

class DirectionGuard {
 public:
  DirectionGuard(int64_t every_steps, size_t buckets)  // 0 steps: never
      : every_steps_(every_steps), buckets_(static_cast<int64_t>(buckets)) {}

  bool Guards(int64_t step, size_t bucket) const;
  // Records a reading, unless `dense` is zero and has no direction. `residual` is this rank's and
  // may be empty.
  void Compare(size_t parameter, std::span<const float> dense, std::span<const float> compressed,
               std::span<const float> residual, int ranks);
  // Since the last call.
  std::vector<DirectionReading> TakeReadings() { return std::exchange(readings_, {}); }

 private:
  const int64_t every_steps_, buckets_;
  std::vector<DirectionReading> readings_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_DIRECTION_GUARD_H_
