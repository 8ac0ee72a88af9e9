#include "apps/commands/config_flags.h"

#include <fmt/core.h>
#include <google/protobuf/stubs/strutil.h>

#include <CLI/CLI.hpp>

#include "apps/default_config.h"
#include "core/logging.h"
#include "core/parallel_for.h"
#include "core/thread_budget.h"

namespace ringtail {

void ConfigFlags::SetString(const std::string& field, const std::string& value) {
  set.push_back(fmt::format("{}=\"{}\"", field, google::protobuf::CEscape(value)));
}

void ConfigFlags::SetNumber(const std::string& field, int64_t value) {
  set.push_back(fmt::format("{}={}", field, value));
}

void AddConfigFlag(CLI::App* app, ConfigFlags* flags, const std::string& instead) {
  app->add_option("--config", flags->config,
                  fmt::format("Config file (default: {}configs/{})", instead, kDefaultConfigName))
      ->type_name("FILE");
}

void AddSetFlag(CLI::App* app, ConfigFlags* flags) {
  app->add_option("--set", flags->set,
                  "Override any field, e.g. train.epochs=3 or net.layer[fc].linear.bias=false; "
                  "FIELD= empties a list; repeatable. The fields, with defaults and ranges: "
                  "layers/net.proto, data/data.proto, optim/optim.proto, dist/dist.proto, "
                  "apps/run.proto")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void AddThreadsFlag(CLI::App* app, ConfigFlags* flags, const std::string& otherwise) {
  app->add_option("--threads", flags->threads,
                  fmt::format("Compute threads (default: train.threads, if that is set, else {})",
                              otherwise))
      ->check(CLI::Range(1, 4096));
}

ComputeThreads UseThreads(const ConfigFlags& flags, const RunConfig& config, int ranks_here) {
  const int asked = flags.threads > 0 ? flags.threads : config.train().threads();
  const int cores = CoresOfProcess(UsableCores(), OnlineCores(), ranks_here);
  const ThreadBudget budget = SplitCores(cores, asked, config.data().workers());
  SetNumComputeThreads(budget.compute);
  // Ranks that have to share cores know it; where each has its own, others are no ranks of this job.
  const auto tell = ranks_here <= cores || UsableCores() < OnlineCores()
                        ? [](const std::string& notice) { LogWarning(notice); }
                        : [](const std::string&) {};
  return {.words = budget.Describe(), .watch = std::make_unique<CoreWatch>(tell)};
}

}  // namespace ringtail
