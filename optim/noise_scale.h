// The gradient noise scale (McCandlish, Kaplan, Amodei et al. 2018, arXiv 1812.06162): how large a
// batch can usefully be, estimated for free while several ranks train.
//
//   every image's gradient = G + noise,   E |noise|^2 = S          the same G and S for all
//   mean of b images       = G + noise,   E |noise|^2 = S / b
//   noise scale              = S / |G|^2                              (equation 2.9, "B_simple")
//
// A batch much smaller than the noise scale is mostly noise: twice the batch, half the steps. A
// batch much larger is mostly signal: twice the batch saves hardly any steps. At the noise scale
// itself training takes twice the steps, and twice the images, of the two extremes.
//
// Two batch sizes suffice to estimate |G|^2 and S, and N ranks have both (appendix A.1). With b_k
// images and mean gradient g_k on rank k, B images and mean gradient g on all of them,
//
//   E sum_k b_k |g_k|^2 = B |G|^2 + N S          S     ~ (sum_k b_k |g_k|^2 - B |g|^2) / (N - 1)
//   E            |g|^2  =   |G|^2 + S / B        |G|^2 ~ |g|^2 - S / B
//
// without bias for any sizes of the ranks' shares and any B of a step (optim/batch_growth.h); with
// equal shares these are the paper's own equations.
// The estimates of one step scatter widely, the second one even below 0, so both are averaged over
// about the last hundred measured steps before they are divided. Batch norm over each rank's own
// images makes ranks differ a little more, and the noise scale a little larger, than without it.
// State: two averages, not in checkpoints: a resumed run starts new ones. Thread-safety: none.
// Cost: |g_k|^2, a pass over this rank's gradients (core/sum_of_squares.h); with ranks of one core
// each, a hundredth of a step of resnet18, and so only every fourth step is measured.
#ifndef RINGTAIL_OPTIM_NOISE_SCALE_H_
#define RINGTAIL_OPTIM_NOISE_SCALE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ringtail {

class NoiseScale {
 public:
  static constexpr int64_t kEverySteps = 4;
  static bool Measures(int64_t step) { return step % kEverySteps == 0; }
  static constexpr double kDecay = 0.99;    // of the averages, per measured step
  static constexpr int64_t kMinSteps = 10;  // measured steps before the first estimate

  struct Step {
    int64_t ranks = 0;        // N that have images of the step, at least 2
    double batch = 0;         // B, above 0
    double rank_squares = 0;  // sum_k b_k |g_k|^2
    double squares = 0;       // |g|^2
  };
  void Add(const Step& step);

  double gradient() const;  // |G|^2, averaged; may be below 0
  double noise() const;     // S, averaged
  // S / |G|^2 in images; nullopt while there are few steps or |G|^2 is not above 0.
  std::optional<double> Images() const;
  // "noise scale 740: beyond a global batch of about 740 more ranks stop helping"; "" if unknown.
  std::string Describe() const;

 private:
  double Corrected(double average) const;
  int64_t steps_ = 0;
  double gradient_ = 0, noise_ = 0;  // averages that start at 0
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_NOISE_SCALE_H_
