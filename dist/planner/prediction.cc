#include "dist/planner/prediction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/units.h"

namespace ringtail {
namespace {

struct Part {
  std::string_view name, sentence;
  double seconds = 0;
};

// In the order of a step.
std::array<Part, 12> PartsOf(const PredictedSeconds& s) {
  return {Part{"data", "it waits for images", s.data_wait},
          {"forward", "it computes: forward is the longest part", s.forward},
          {"backward", "it computes: backward is the longest part", s.backward},
          {"contention", "communication takes the cores that backward needs", s.contention},
          {"waiting", "ranks wait for the slowest one", s.waiting},
          {"coding", "it encodes and decodes gradients", s.coding},
          {"wire", "it waits for the wire", s.wire},
          {"activations", "it waits for activations of layers that are divided", s.activations},
          {"batch norm", "it waits for batch norm's sums over all ranks", s.batch_norm},
          {"update", "it updates weights, which more hosts do not divide", s.update},
          {"merge", "it merges the ranks' weights", s.merge},
          {"roll call", "it waits for the roll call", s.roll_call}};
}

void AddShare(double share, const Prediction& other, Prediction* mean) {
  using S = PredictedSeconds;
  for (double S::*const part :
       {&S::data_wait, &S::forward, &S::backward, &S::update, &S::contention, &S::waiting,
        &S::coding, &S::wire, &S::activations, &S::batch_norm, &S::merge, &S::roll_call}) {
    mean->seconds.*part += share * (other.seconds.*part);
  }
  mean->communication += share * other.communication;
  mean->sent_bytes += share * other.sent_bytes;
}

}  // namespace

Prediction MeanOf(std::span<const Prediction> predictions, std::span<const double> shares) {
  RT_CHECK(!predictions.empty() && predictions.size() == shares.size(), "each has a share");
  if (predictions.size() == 1) return predictions.front();
  Prediction mean = predictions.front();
  mean.seconds = {};
  mean.communication = mean.sent_bytes = 0;
  for (size_t i = 0; i < shares.size(); ++i) AddShare(shares[i], predictions[i], &mean);
  return mean;
}

std::string Reason(const Prediction& prediction) {
  const auto parts = PartsOf(prediction.seconds);
  const Part longest = *std::ranges::max_element(parts, {}, &Part::seconds);
  const double steps = prediction.choice.period;
  return fmt::format("{} for {:.1f} of {:.1f} ms per step", longest.sentence,
                     longest.seconds / steps * kMsPerSecond,
                     prediction.step_seconds() * kMsPerSecond);
}

std::string CriticalPath(const Prediction& prediction) {
  std::vector<std::string> path;
  const double per_step = kMsPerSecond / prediction.choice.period;
  for (const Part& part : PartsOf(prediction.seconds)) {
    if (part.seconds > 0)
      path.push_back(fmt::format("{} {:.1f}", part.name, part.seconds * per_step));
  }
  return fmt::format("{} = {:.1f} ms per step", fmt::join(path, ", "),
                     prediction.step_seconds() * kMsPerSecond);
}

std::optional<std::string> SlowerThanOne(const Prediction& prediction, const Prediction& one_host) {
  const double ratio = prediction.images_per_s() / one_host.images_per_s();
  if (prediction.choice.hosts == 1 || ratio >= 1) return std::nullopt;
  return fmt::format(
      "{}: predicted {:.4g} images/s, {:.2g} times one host alone ({:.4g}), because {}",
      Describe(prediction.choice), prediction.images_per_s(), ratio, one_host.images_per_s(),
      Reason(prediction));
}

}  // namespace ringtail
