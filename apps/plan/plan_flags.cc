#include "apps/plan/plan_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/plan/choice_settings.h"
#include "apps/plan/dropped_ways.h"

namespace ringtail {
namespace {

// The parts that the config has would not be equal ones of every batch.
std::vector<std::string> BatchSettings(const TrainConfig& train, int64_t batch) {
  if (train.batch() == batch) return {};
  std::vector<std::string> settings = {fmt::format("train.batch={}", batch)};
  const int64_t parts = EqualParts(batch, train.accumulation());
  if (parts != train.accumulation()) {
    settings.push_back(fmt::format("train.accumulation={}", parts));
  }
  return settings;
}

}  // namespace

int64_t BatchOfOneHost(const RunConfig& config, int64_t global_batch) {
  const int64_t known =
      std::max(config.train().batch(), config.optim().batch_scaling().reference_batch());
  return std::min(known, global_batch);
}

std::string PlanFlags(const RunConfig& config, int64_t batch, bool local_batch) {
  std::string flags = "--plan auto";
  std::vector<std::string> settings = BatchSettings(config.train(), batch);
  // What AUTO wants to choose itself, in a run that goes another way.
  for (std::string& setting : SettingsWithoutOtherWays(config, {})) {
    settings.push_back(std::move(setting));
  }
  for (const std::string& setting : settings) flags += " --set " + setting;
  return local_batch ? flags + ", without --local-batch" : flags;
}

}  // namespace ringtail
