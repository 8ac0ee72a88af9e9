// Corrections of a late gradient, element by element. Gradients G are sums over b images, g = G / b
// is the mean; the corrections are not linear in g, so b matters.
//
//   then    w_j, which the worker computed with         now     w_t, which the update changes
//
//   delay compensation   G' = G (1 + f),   f = lambda g (now - then), at most `limit` by magnitude
//     constant           lambda is given                                    DC-ASGD-c
//     adaptive           lambda = strength / sqrt(MS + 1e-7),               DC-ASGD-a
//                        MS = decay MS + (1 - decay) g g, one MS per worker
//   gap                  G' = G / (1 + |now - then| / step)                 Gap-Aware
//                        step: the mean change of a weight in an update
//   DANA                 v = m v + g, one v per worker; G' = b v            DANA-Zero
//                        workers compute at now - rate m (sum of all v)
//   DANA with gaps       the same with G' of the gap; `then` is what the worker was given
//
// Sources: Zheng et al. 2017, "Asynchronous Stochastic Gradient Descent with Delay Compensation"
// (DC-ASGD); Barkai et al. 2020, "Gap-Aware Mitigation of Gradient Staleness"; Hakimi et al. 2019,
// "Taming Momentum in a Distributed Asynchronous Environment" (DANA). The limit is not theirs.
//
// `then` belongs to the push, and so to its worker. MXNet's DCASGD keeps one `then` for each
// parameter, the weights before the last update of any worker. One weight, w = 1, rate 0.5, lambda
// 1; A and B pull at first, B again after its push:
//
//   push        now    then   G'                      w       with one `then` for all
//   A, g = 1    1      1      1                       0.5     then = 1:    the same
//   B, g = 1    0.5    1      1 - 1 * 1 * 0.5 = 0.5   0.25    then = 1:    the same
//   B, g = 2    0.25   0.25   2, nothing is late      -0.75   then = 0.5:  1, w = -0.25
//
// Spans are of one length and do not overlap, except that `out` may be `gradient`. The same bits on
// every machine. Thread-safety: pure functions. Cost: one vectorised pass, no allocation.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_COMPENSATION_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_COMPENSATION_H_

#include <cstdint>
#include <span>

namespace ringtail {

// The weights of a push, and those of now.
struct WeightsOfPush {
  std::span<const float> then, now;
};

// `limit` may be infinite.
void CompensateDelay(std::span<const float> gradient, int64_t images, const WeightsOfPush& weights,
                     double lambda, double limit, std::span<float> out);
// The same by mean_squares, after UpdateMeanSquares.
void CompensateDelayAdaptively(std::span<const float> gradient, int64_t images,
                               const WeightsOfPush& weights, std::span<const float> mean_squares,
                               double strength, double limit, std::span<float> out);
void UpdateMeanSquares(std::span<const float> gradient, int64_t images, double decay,
                       std::span<float> mean_squares);

// step > 0
void WeighByGap(std::span<const float> gradient, const WeightsOfPush& weights, double step,
                std::span<float> out);

// velocity_sum follows the change of `velocity`.
void AddToVelocity(std::span<const float> gradient, int64_t images, double momentum,
                   std::span<float> velocity, std::span<float> velocity_sum, std::span<float> out);
// out = weights - distance * velocity_sum
void LookAhead(std::span<const float> weights, std::span<const float> velocity_sum, double distance,
               std::span<float> out);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_COMPENSATION_H_
