// Random-k: a share of the gradient at places that all ranks draw alike, so that the values alone
// travel, and are summed by an ordinary allreduce. (Wangni et al. 2018 and Stich et al. 2018 study
// the choice; a common seed makes it cheap.)
//
//   gradient of rank 0      1   2   3   4   5   6        drawn for this step: places 1 and 4
//   gradient of rank 1      9   8   7   6   5   4
//   packed                  | 2 | 5 |     | 8 | 5 |      k = ceil(density n) floats per rank
//   sum                     | 10 | 10 |
//   approximation           0  10   0   0  10   0        the rest is ErrorFeedback's
//
// Which places: Philox, keyed by seed, step and parameter; each set of k places is equally likely.
// They are never sent: half of top-k's bytes at the same density, and an allreduce instead of an
// allgather. But large elements wait for their turn like all others, 1 / density steps on average.
// What is not finite anywhere in a gradient makes all that is packed NaN: whoever packs it may not
// draw its place for long, and the run is to stop in this step.
// Cost: drawing takes about 20 ns per place; a pass that looks for what is not finite.
#ifndef RINGTAIL_DIST_COMPRESSION_SKETCHES_RANDOM_K_SKETCH_H_
#define RINGTAIL_DIST_COMPRESSION_SKETCHES_RANDOM_K_SKETCH_H_

#include <vector>

#include "dist/compression/gradient_shape.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

struct RandomKOptions {
  double density = 0.01;  // (0, 1]
};

class RandomKSketch : public Sketch {
 public:
  RandomKSketch(const RandomKOptions& options, const GradientShape& shape);

  std::string Describe() const override;  // "1% at random places"
  int rounds() const override { return 1; }
  int64_t Floats(int round) const override;
  void Pack(int round, const CodecMoment& moment, std::span<const float> gradient,
            std::span<float> floats) override;
  void Take(int round, const CodecMoment& moment, std::span<const float> sum) override;
  void Unpack(const CodecMoment& moment, std::span<float> approximation) override;
  std::span<float> state() override { return {}; }

 private:
  void DrawPlaces(const CodecMoment& moment);

  const RandomKOptions options_;
  const int64_t elements_;
  // Of one step, from Pack to Unpack:
  std::vector<int32_t> places_;  // ascending
  std::vector<float> sum_;
  std::vector<uint64_t> drawn_;  // bit i: place i
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SKETCHES_RANDOM_K_SKETCH_H_
