// OuterOptimizer: from what ranks have changed in steps of their own to new common weights.
//
//   w       common weights ("reference"): the values of `arena`
//   D       mean over the ranks of w - w_i, where w_i are rank i's weights after its steps; D has
//           the sign of a gradient: arena's grads hold the sum, `mean` makes it the mean
//
//   NESTEROV       v = m v + D,      w = w - r (D + m v)      DiLoCo (Douillard et al. 2023, algorithm
//                                                             1), MuLoCo (Therien et al. 2025)
//   SLOW_MOMENTUM  v = m v + D / lr, w = w - r lr v           SlowMo (Wang et al. 2020, algorithm 1);
//                                                             lr: rate of the ranks' own steps
//   m = 0, r = 1                     w = mean of w_i          local SGD (Stich 2019)
//
// Both are SGD (optim/sgd.h) on D, without decay. The same bits on every instruction set, so ranks
// on different machines keep the same common weights.
// Thread-safety: the trainer thread. State: v. Cost: one pass, 20 bytes per weight.
#ifndef RINGTAIL_OPTIM_OUTER_OPTIMIZER_H_
#define RINGTAIL_OPTIM_OUTER_OPTIMIZER_H_

#include <cstdint>
#include <vector>

#include "core/parameter.h"
#include "optim/optimizer.h"
#include "optim/sgd.h"

namespace ringtail {

struct OuterRule {
  enum class Form { kNesterov, kSlowMomentum };
  Form form = Form::kNesterov;
  double learning_rate = 1, momentum = 0;

  // Whether the new weights are the ranks' mean, so that one rank alone changes nothing.
  bool averages() const { return learning_rate == 1 && momentum == 0; }
};

class OuterOptimizer {
 public:
  OuterOptimizer(const OuterRule& rule, ParameterArena* arena);  // which must outlive it

  // `round`: 0, 1, 2, ...; `mean`: 1 / number of what was summed; `inner_rate`: of the last step.
  void Step(int64_t round, double mean, double inner_rate);
  std::vector<Optimizer::StateBlock> state() { return sgd_.state(); }

 private:
  const OuterRule rule_;
  Sgd sgd_;
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_OUTER_OPTIMIZER_H_
