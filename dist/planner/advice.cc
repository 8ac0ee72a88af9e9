#include "dist/planner/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/round.h"

namespace ringtail {
namespace {

constexpr int64_t kKib = 1024;

// "compression { scheme { linear8 { } } }", without the scheme "dense".
std::string CompressionText(const Choice& choice, const PlannerFacts& facts) {
  for (const SchemeFacts& scheme : facts.scheme()) {
    if (scheme.name() == choice.scheme) {
      return fmt::format("compression {{ {} }}", scheme.compression().ShortDebugString());
    }
  }
  return "";
}

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

std::vector<std::string> ConfigLines(const Choice& choice, const PlannerFacts& facts,
                                     int64_t ranks) {
  std::vector<std::string> lines;
  const int64_t batch = CeilDivide(choice.global_batch, ranks);
  const int64_t largest = facts.step(facts.step_size() - 1).batch();
  lines.push_back(fmt::format("train.batch: {}", batch));
  lines.push_back(fmt::format("train.accumulation: {}", CeilDivide(batch, largest)));
  if (ranks == 1) return lines;
  if (choice.algorithm != "auto") {
    lines.push_back(fmt::format("dist.algorithm: \"{}\"", choice.algorithm));
  }
  const BucketOptions defaults;
  if (choice.buckets.bytes != defaults.bytes) {
    lines.push_back(fmt::format("dist.bucket_kib: {}", choice.buckets.bytes / kKib));
  }
  if (choice.buckets.end_bytes != defaults.end_bytes) {
    lines.push_back(fmt::format("dist.end_bucket_kib: {}", choice.buckets.end_bytes / kKib));
  }
  const std::string compression = CompressionText(choice, facts);
  if (choice.period > 1) {
    lines.push_back(fmt::format("dist.local {{ period: {} overlap: {}{}{} }}", choice.period,
                                choice.overlap, compression.empty() ? "" : " ", compression));
  } else if (!compression.empty()) {
    lines.push_back("dist." + compression);
  }
  return lines;
}

}  // namespace ringtail
