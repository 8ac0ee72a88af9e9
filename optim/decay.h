// The weight decay and the rate of each parameter. Convolution and linear weights decay, others
// only with `decay_vectors`; biases and batch norm have few parameters, and decaying them costs
// accuracy (Goyal et al. 2017, section 5.1). The rule decides whether decay is coupled (part of the
// gradient) or decoupled. The rate falls with the distance from the loss (optim.layer_decay; Howard
// & Ruder 2018, section 3.2): weights that were loaded change least where they are most general.
// Thread-safety: immutable.
#ifndef RINGTAIL_OPTIM_DECAY_H_
#define RINGTAIL_OPTIM_DECAY_H_

#include <string>
#include <vector>

#include "core/parameter.h"
#include "optim/optim.pb.h"

namespace ringtail {

class Decay {
 public:
  Decay(const OptimConfig& config, const ParameterArena& arena);

  double Of(size_t parameter) const { return decay_[parameter]; }  // index as in arena.parameters()
  // `learning_rate` times layer_decay ^ depth.
  double Rate(size_t parameter, double learning_rate) const {
    return learning_rate * rate_factors_[parameter];
  }
  // " weight_decay=0.0005" or " weight_decay=0.0005 (vectors, too)"; " layer_decay=0.5" where set.
  std::string Describe() const;

 private:
  double weight_decay_, layer_decay_;
  bool decay_vectors_;
  // One per parameter: weight_decay or 0; layer_decay ^ depth.
  std::vector<double> decay_, rate_factors_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_DECAY_H_
