// PowerSGD: approximates the gradient of a layer, as a matrix, by the product of two thin ones.
// (Vogels, Karimireddy & Jaggi, NeurIPS 2019, arXiv 1905.13727, algorithm 1.)
//
//        columns                            r
//      +---------+                        +--+      columns
//      |         |                        |  |    +---------+
// rows |    M    |   is nearly       rows |P |  x |  Q^T    | r      r (rows + columns) floats
//      |         |                        |  |    +---------+        instead of rows x columns
//      +---------+                        +--+
//
//   round 0     P = M Q                    summed over ranks, then made orthonormal
//   round 1     Q = M^T P                  summed over ranks; kept for the next step
//   at the end  approximation = P Q^T      of the sum over ranks
//
// Both products are linear in M, so their sums are those of the summed gradient S: P spans where
// S maps Q, and P Q^T = P P^T S is the part of S that lies there. Each step is one step of the
// power iteration for the r largest singular vectors; a gradient changes little from step to step,
// so starting from the last Q ("warm start") makes one step sufficient. All ranks compute P and Q
// from the same sums with the same instructions, and so have the same bits.
//
// The first Q is drawn from Philox, keyed by seed, parameter and step, the same on all ranks.
// Later, so is every vector of Q that has become zero (a gradient of lower rank) or not finite,
// from which it could not recover by itself. Uniform, not normal: log and cos differ between
// machines in their last bits.
//
// r: options.rank, but no more than min(rows, columns). The published code takes means over ranks;
// here they are sums, so the approximation is N times that. State: Q, r x columns.
// Cost: three passes over the gradient (thin_product.h); 3 x 2 r operations per element.
#ifndef RINGTAIL_DIST_COMPRESSION_SKETCHES_POWER_SGD_SKETCH_H_
#define RINGTAIL_DIST_COMPRESSION_SKETCHES_POWER_SGD_SKETCH_H_

#include <vector>

#include "dist/compression/gradient_shape.h"
#include "dist/compression/sketches/sketch.h"
#include "dist/compression/sketches/thin_product.h"

namespace ringtail {

struct PowerSgdOptions {
  int rank;  // >= 1
};

class PowerSgdSketch : public Sketch {
 public:
  PowerSgdSketch(const PowerSgdOptions& options, const GradientShape& shape);

  // Whether it at least halves the bytes: 2 r (rows + columns) < rows x columns.
  static bool Worthwhile(const GradientShape& shape, int rank);

  std::string Describe() const override;  // "rank 2"
  int rounds() const override { return 2; }
  int64_t Floats(int round) const override;
  void Pack(int round, const EncodeContext& context, std::span<const float> gradient,
            std::span<float> floats) override;
  void Take(int round, const EncodeContext& context, std::span<const float> sum) override;
  void Unpack(const EncodeContext& context, std::span<float> approximation) override;
  std::span<float> state() override { return q_; }

 private:
  void DrawDeadVectors(const EncodeContext& context);

  const ThinShape shape_;
  std::vector<float> p_;  // rank x rows, of this step
  std::vector<float> q_;  // rank x columns
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SKETCHES_POWER_SGD_SKETCH_H_
