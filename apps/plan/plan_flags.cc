#include "apps/plan/plan_flags.h"

#include <fmt/core.h>

#include <algorithm>

#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"

namespace ringtail {
namespace {

// What AUTO wants to choose itself, in a run that goes another way.
std::string WithoutOtherWays(const DistConfig& dist) {
  std::string flags;
  if (UsesLocalRounds(dist)) flags += " --set dist.local={}";
  if (CompressesAnything(dist.compression())) flags += " --set dist.compression={}";
  if (dist.model_parallel().linear() != ModelParallelConfig::WHOLE) {
    flags += " --set dist.model_parallel={}";
  }
  return flags;
}

}  // namespace

int64_t BatchOfOneHost(const RunConfig& config, int64_t global_batch) {
  const int64_t known =
      std::max(config.train().batch(), config.optim().batch_scaling().reference_batch());
  return std::min(known, global_batch);
}

std::string PlanFlags(const RunConfig& config, int64_t batch, bool local_batch) {
  std::string flags = "--plan auto";
  if (config.train().batch() != batch) flags += fmt::format(" --set train.batch={}", batch);
  flags += WithoutOtherWays(config.dist());
  return local_batch ? flags + ", without --local-batch" : flags;
}

}  // namespace ringtail
