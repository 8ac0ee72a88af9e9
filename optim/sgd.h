// Stochastic gradient descent with momentum, as PyTorch defines it (Sutskever et al. 2013, with the
// rate outside the velocity, so that a change of rate acts at once: this form includes what Goyal
// et al. 2017 call momentum correction; tests/optim/momentum_correction_test.cc).
//
//   g = grad_scale * grad + wd w           coupled decay (L2); decoupled: without wd w
//   v = m v + g                            v starts at 0, so the first step has v = g
//   u = v                                  Nesterov: u = g + m v
//   w = w - lr u                           decoupled (SGDW, Loshchilov & Hutter 2019):
//                                          w (1 - lr wd) - lr u
//
// State: v ("momentum"), none if m is 0. Cost: reads w, g, v and writes w, v: 20 bytes per weight.
#ifndef RINGTAIL_OPTIM_SGD_H_
#define RINGTAIL_OPTIM_SGD_H_

#include "optim/decay.h"
#include "optim/optimizer.h"

namespace ringtail {

class Sgd : public Optimizer {
 public:
  static constexpr bool kAdaptsToBatch = false;
  static constexpr bool kUpdatesElementwise = true;
  static Status Validate(const SgdConfig& config, const ConfigSource* source);
  Sgd(const SgdConfig& config, Decay decay, ParameterArena* arena);  // requires a valid config

  void Step(int64_t step, double learning_rate, double grad_scale) override;
  std::vector<StateBlock> state() override;
  std::string Describe() const override;

 private:
  SgdConfig config_;
  Decay decay_;
  ParameterArena* arena_;
  AlignedBuffer velocity_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_SGD_H_
