// The weight decay of each parameter: convolution and linear weights decay, others only with
// `decay_vectors`; biases and batch norm have few parameters, and decaying them costs accuracy
// (Goyal et al. 2017, section 5.1). The rule decides whether decay is coupled (part of the
// gradient) or decoupled. Thread-safety: immutable.
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
  std::string Describe() const;  // " weight_decay=0.0005" or " weight_decay=0.0005 (vectors, too)"

 private:
  double weight_decay_;
  bool decay_vectors_;
  std::vector<double> decay_;  // one per parameter: weight_decay or 0
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_DECAY_H_
