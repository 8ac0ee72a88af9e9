#include "dist/planner/advice.h"

#include <fmt/format.h>

namespace ringtail {
namespace {

std::string RateText(const Prediction& prediction) {
  return fmt::format("{:.4g} images/s", prediction.images_per_s());
}

}  // namespace

std::optional<std::string> SlowerThanOne(const Prediction& prediction, const Prediction& one_host) {
  const double ratio = prediction.images_per_s() / one_host.images_per_s();
  if (prediction.choice.hosts == 1 || ratio >= 1) return std::nullopt;
  return fmt::format("{}: predicted {}, {:.2g} times one host alone ({:.4g}), because {}",
                     Describe(prediction.choice), RateText(prediction), ratio,
                     one_host.images_per_s(), Reason(prediction));
}

}  // namespace ringtail
