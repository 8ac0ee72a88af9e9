#include "dist/parameter_server/momentum_correction.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

double PushesUnderWay(const AsynchronousRule& rule, int workers, bool ahead) {
  RT_CHECK(workers >= 1, "a job has workers");
  if (rule.grouping.by == Grouping::By::kAllWorkers) return 1;
  const int pushes = rule.grouping.PushesPerUpdate(workers);
  return std::max(1.0, (ahead ? 2.0 : 1.0) * workers / pushes);
}

double ExplicitMomentum(double momentum, double under_way) {
  RT_CHECK(momentum >= 0 && momentum < 1 && under_way >= 1, "a momentum and a number of pushes");
  return std::max(0.0, 1 - under_way * (1 - momentum));
}

}  // namespace ringtail
