#include "dist/parameter_server/staleness_weight.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace ringtail {

double StalenessWeight::Of(int64_t staleness, int64_t updates) const {
  RT_CHECK(staleness >= 0 && updates >= 0, "a gradient is not older than the first weights");
  const auto tau = static_cast<double>(staleness);
  switch (form) {
    case Form::kOne:
    case Form::kGapAware:
      return 1;
    case Form::kInverse:
      return 1 / std::max(1.0, tau);
    case Form::kInverseOfNext:
      return 1 / (1 + tau);
    case Form::kExponential:
      return std::exp(-rate * tau);
    case Form::kAdaDelay:
      return 1 / (1 + rate * std::sqrt(static_cast<double>(updates) + tau));
  }
  RT_CHECK(false, "a form of weight");
  return 1;
}

}  // namespace ringtail
