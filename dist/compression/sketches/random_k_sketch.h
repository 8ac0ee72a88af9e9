// Random-k: part of the gradient, at places that all ranks draw alike, so that only the values
// travel, and an ordinary allreduce sums them. (Wangni et al. 2018 and Stich et al. 2018 study
// the choice; a common seed makes it cheap.)
//
//   gradient of rank 0      1   2   3   4   5   6        drawn for this step: places 1 and 4
//   gradient of rank 1      9   8   7   6   5   4
//   packed                  | 2 | 5 |     | 8 | 5 |      k = ceil(density n) floats per rank
//   sum                     | 10 | 10 |
//   approximation           0  10   0   0  10   0        the rest stays in the residual
//
// Which places: Philox, keyed by seed, step and parameter; each set of k places is equally likely.
// They are never sent: half of top-k's bytes at the same density, and an allreduce instead of an
// allgather. But large elements wait like all others, 1 / density steps on average.
// An element that is not finite, wherever it is, makes all that is packed NaN: its place may not be
// drawn for long, and the run must stop in this step.
// Cost: drawing takes about 20 ns per place; one pass checks that all elements are finite.
#ifndef RINGTAIL_DIST_COMPRESSION_SKETCHES_RANDOM_K_SKETCH_H_
#define RINGTAIL_DIST_COMPRESSION_SKETCHES_RANDOM_K_SKETCH_H_

#include <vector>

#include "dist/compression/gradient_shape.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

struct RandomKOptions {
  double density;  // (0, 1]
};

class RandomKSketch : public Sketch {
 public:
  RandomKSketch(const RandomKOptions& options, const GradientShape& shape);

  std::string Describe() const override;  // "1% at random places"
  int rounds() const override { return 1; }
  int64_t Floats(int round) const override;
  void Pack(int round, const EncodeContext& context, std::span<const float> gradient,
            std::span<float> floats) override;
  void Take(int round, const EncodeContext& context, std::span<const float> sum) override;
  void Unpack(const EncodeContext& context, std::span<float> approximation) override;
  std::span<float> state() override { return {}; }

 private:
  void DrawPlaces(const EncodeContext& context);

  const RandomKOptions options_;
  const int64_t elements_;
  // Within one step, from Pack to Unpack:
  std::vector<int32_t> places_;  // ascending
  std::vector<float> sum_;
  std::vector<uint64_t> drawn_;  // bit i: place i
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SKETCHES_RANDOM_K_SKETCH_H_
