// Which parameters weight decay acts on, and how strongly: convolution and linear weights only,
// unless `decay_vectors`; biases and batch norm are few, and pulling them to zero costs accuracy
// (Goyal et al. 2017, section 5.1). Whether decay is coupled (in the gradient) or decoupled is the
// rule's affair. Thread-safety: immutable.
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
