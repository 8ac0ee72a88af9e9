// BiasCorrections: what Adam and LAMB divide their running means by, which start at 0 and so are
// too small at first (Kingma & Ba 2015, section 3).
//
//   m / (1 - b1^t)      sqrt(v / (1 - b2^t))      t = the parameter's updates, this one included
//
// Parameters that were frozen at first have had fewer updates than the run has steps; PyTorch, too,
// counts for each parameter from its first gradient. Thread-safety: immutable.
#ifndef RINGTAIL_OPTIM_BIAS_CORRECTION_H_
#define RINGTAIL_OPTIM_BIAS_CORRECTION_H_

#include <cstdint>
#include <map>
#include <span>

namespace ringtail {

struct BiasCorrection {
  double first = 1;        // 1 - b1^t
  double root_second = 1;  // sqrt(1 - b2^t)
};

class BiasCorrections {
 public:
  // Of step `step` (0-based) of the run. `first_steps`: the first step that updates each parameter;
  // empty: step 0. It must outlive this.
  BiasCorrections(double beta1, double beta2, int64_t step, std::span<const int64_t> first_steps);

  const BiasCorrection& Of(size_t parameter) const {
    return by_first_step_.at(first_steps_.empty() ? 0 : first_steps_[parameter]);
  }

 private:
  const std::span<const int64_t> first_steps_;
  std::map<int64_t, BiasCorrection> by_first_step_;  // one or two
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_BIAS_CORRECTION_H_
