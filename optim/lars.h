// LARS (You, Gitman & Ginsburg 2017, arXiv 1708.03888, algorithm 1): momentum SGD with a rate for
// each weight tensor, so that no layer moves by more than a small fraction of its norm in a step,
// however large the batch and with it the rate.
//
//   g     = grad_scale * grad + wd w
//   ratio = trust ||w|| / (||grad_scale * grad|| + wd ||w|| + epsilon)     one per weight tensor
//   v     = m v + ratio g                                                  v starts at 0
//   w     = w - lr v
//
// ratio is 1 where either norm is 0, and for biases and batch norm, whose norms tell nothing about
// the right step length (as in MXNet's lars.py and You's own code).
// The paper keeps the rate inside v, so that old gradients keep the rate of their step. Here it is
// outside, as in optim/sgd.h, which equals the paper's form with momentum correction (Goyal et al.
// 2017, section 3, remark 2; tests/optim/momentum_correction_test.cc).
// State: v ("momentum"). Cost: a pass over w and g for the norms, then Sgd's: 28 bytes per weight.
#ifndef RINGTAIL_OPTIM_LARS_H_
#define RINGTAIL_OPTIM_LARS_H_

#include "optim/decay.h"
#include "optim/optimizer.h"
#include "optim/parameter_walk.h"

namespace ringtail {

class Lars : public Optimizer {
 public:
  static constexpr bool kAdaptsToBatch = true;
  static constexpr bool kUpdatesElementwise = false;
  static Status Validate(const LarsConfig& config, const ConfigSource* source);
  Lars(const LarsConfig& config, Decay decay, ParameterArena* arena);  // requires a valid config

  void Step(int64_t step, double learning_rate, double grad_scale) override;
  std::vector<StateBlock> state() override;
  std::string Describe() const override;

 private:
  std::vector<double> Ratios(double grad_scale) const;  // one per parameter
  LarsConfig config_;
  Decay decay_;
  ParameterArena* arena_;
  AlignedBuffer velocity_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_LARS_H_
