// StalenessWeight: how much a gradient counts that is tau updates old.
//
//   tau                 0      1      2      4      16
//   kOne                1      1      1      1      1         Dean et al. 2012 (Downpour)
//   kInverse            1      1      0.5    0.25   0.0625    1 / max(1, tau): Zhang et al. 2016
//   kInverseOfNext      1      0.5    0.333  0.2    0.0588    1 / (1 + tau)
//   kExponential 0.5    1      0.607  0.368  0.135  0.0003    e^(-k tau)
//   kAdaDelay 1, t = 9  0.25   0.240  0.232  0.217  0.167     1 / (1 + k sqrt(t + tau))
//   kGapAware           by element and distance instead of tau: compensation.h, WeighByGap
//
// AdaDelay (Sra, Yu, Li, Smola 2016, 1508.05003) takes steps of 1 / (L + c sqrt(t + tau)) after t
// updates. With k = c / L that is the weight above times a learning rate of 1 / L, which is then
// constant: the weight is the schedule.
// Sources: Zhang, Gupta, Lian, Liu: "Staleness-aware Async-SGD", IJCAI 2016.
// Thread-safety: a value. Cost: a few operations.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_STALENESS_WEIGHT_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_STALENESS_WEIGHT_H_

#include <cstdint>

namespace ringtail {

struct StalenessWeight {
  enum class Form { kOne, kInverse, kInverseOfNext, kExponential, kAdaDelay, kGapAware };
  Form form = Form::kOne;
  double rate = 0;  // k; > 0 where there is one

  // 0 < weight <= 1. `staleness` >= 0; `updates`: t, those before this one.
  double Of(int64_t staleness, int64_t updates) const;
  bool operator==(const StalenessWeight&) const = default;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_STALENESS_WEIGHT_H_
