// Adam (Kingma & Ba 2015, algorithm 1) and AdamW (Loshchilov & Hutter 2019, algorithm 2), as
// PyTorch defines them.
//
//   g = grad_scale * grad + wd w           Adam; AdamW: without wd w
//   m = b1 m + (1 - b1) g
//   v = b2 v + (1 - b2) g^2
//   w = w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)     AdamW: from w (1 - lr wd)
//
// t counts the parameter's updates (bias_correction.h): step + 1, but for layers that were frozen
// at first.
// State: m, v ("first_moment", "second_moment").
// Cost: reads w, g, m, v and writes w, m, v: 28 bytes, one square root and one division per weight.
#ifndef RINGTAIL_OPTIM_ADAM_H_
#define RINGTAIL_OPTIM_ADAM_H_

#include "optim/decay.h"
#include "optim/optimizer.h"

namespace ringtail {

class Adam : public Optimizer {
 public:
  static constexpr bool kAdaptsToBatch = false;
  static constexpr bool kUpdatesElementwise = true;
  enum class DecayKind { kCoupled, kDecoupled };  // Adam, AdamW

  // `field`: the field of OptimConfig that holds `config`, "adam" or "adamw".
  static Status Validate(const AdamConfig& config, const std::string& field,
                         const ConfigSource* source);
  Adam(const AdamConfig& config, DecayKind kind, Decay decay, ParameterArena* arena);

  void Step(int64_t step, double learning_rate, double grad_scale) override;
  std::vector<StateBlock> state() override;
  std::string Describe() const override;

 private:
  AdamConfig config_;
  DecayKind kind_;
  Decay decay_;
  ParameterArena* arena_;
  AlignedBuffer first_moment_, second_moment_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_ADAM_H_
