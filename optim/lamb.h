// LAMB (You et al. 2020, arXiv 1904.00962, algorithm 2): AdamW's direction, with a step length for
// each weight tensor of the rate times the tensor's norm; it is to AdamW what LARS is to SGD.
//
//   g     = grad_scale * grad
//   m     = b1 m + (1 - b1) g
//   v     = b2 v + (1 - b2) g^2
//   u     = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon) + wd w     t as in optim/adam.h
//   ratio = min(||w||, max_weight_norm) / ||u||                            one per weight tensor
//   w     = w - lr ratio u
//
// ratio is 1 where either norm is 0, and for biases and batch norm, as in optim/lars.h: they follow
// AdamW. Numbers as in MXNet's lamb.py.
// State: m, v ("first_moment", "second_moment").
// Cost: u is computed twice, for its norm and for the step, which saves a block of memory: 40
// bytes, two square roots and two divisions per weight.
#ifndef RINGTAIL_OPTIM_LAMB_H_
#define RINGTAIL_OPTIM_LAMB_H_

#include "optim/decay.h"
#include "optim/optimizer.h"
#include "optim/parameter_walk.h"

namespace ringtail {

class Lamb : public Optimizer {
 public:
  static constexpr bool kAdaptsToBatch = true;
  static constexpr bool kUpdatesElementwise = false;
  static Status Validate(const LambConfig& config, const ConfigSource* source);
  Lamb(const LambConfig& config, Decay decay, ParameterArena* arena);  // requires a valid config

  void Step(int64_t step, double learning_rate, double grad_scale) override;
  std::vector<StateBlock> state() override;
  std::string Describe() const override;

 private:
  double Ratio(const NormSquares& squares) const;
  LambConfig config_;
  Decay decay_;
  ParameterArena* arena_;
  AlignedBuffer first_moment_, second_moment_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_LAMB_H_
