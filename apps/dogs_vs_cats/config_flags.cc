#include "apps/dogs_vs_cats/config_flags.h"

#include <fmt/core.h>
#include <google/protobuf/stubs/strutil.h>

#include <CLI/CLI.hpp>

#include "apps/config/shipped_configs.h"
#include "apps/help/program_name.h"
#include "core/logging.h"
#include "core/machine/thread_budget.h"
#include "core/machine/thread_limit.h"
#include "core/parallel_for.h"
#include "core/text/counted.h"
#include "data/config_check.h"

namespace ringtail {
namespace {

constexpr int kMostThreadsPerCore = 2;
constexpr int kWatch = 1;  // CoreWatch's thread

}  // namespace

void ConfigFlags::SetString(const std::string& field, const std::string& value) {
  set.push_back(fmt::format("{}=\"{}\"", field, google::protobuf::CEscape(value)));
}

void ConfigFlags::SetNumber(const std::string& field, int64_t value) {
  set.push_back(fmt::format("{}={}", field, value));
}

void AddConfigFlag(CLI::App* app, ConfigFlags* flags, const std::string& instead) {
  app->add_option("--config", flags->config,
                  fmt::format("A shipped network, e.g. resnet18 (`{} configs` lists them), or a "
                              "config file (default: {}{})",
                              ProgramName(), instead, kDefaultConfig))
      ->type_name("NAME|FILE");
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
  // (Options are read in the order of their definition: this one adds to what --set has given.)
  app->add_option_function<std::string>(
         "--precision",
         [flags](const std::string& precision) {
           const char* const value = precision == "auto"   ? "AUTO"
                                     : precision == "bf16" ? "BFLOAT16"
                                                           : "FLOAT32";
           flags->set.push_back(fmt::format("train.precision={}", value));
         },
         "f32, bf16 or auto, the faster of them as measured: what activations are stored in and "
         "convolutions and linear layers compute in (default: train.precision)")
      ->type_name("PRECISION")
      ->check(CLI::IsMember({"f32", "bf16", "auto"}));
}

void AddThreadsFlag(CLI::App* app, ConfigFlags* flags, const std::string& otherwise) {
  app->add_option("--threads", flags->threads,
                  fmt::format("Compute threads (default: train.threads, if that is set, else {})",
                              otherwise))
      ->check(CLI::Range(1, 4096));
}

void AddStepFlags(CLI::App* app, StepFlags* flags) {
  constexpr int64_t kMostImages = 1 << 20;
  app->add_option("--batch", flags->batch, "Images per step (default: the config's)")
      ->check(CLI::Range(int64_t{1}, kMostImages));
  app->add_option("--image-size", flags->image_size, "Pixels (default: the config's)")
      ->check(CLI::Range(kMinImageSize, kMaxImageSize));
}

StatusOr<ComputeThreads> UseThreads(const ConfigFlags& flags, const RunConfig& config,
                                    int ranks_here, int others) {
  const int asked = flags.threads > 0 ? flags.threads : config.train().threads();
  const int cores = CoresOfProcess(UsableCores(), OnlineCores(), ranks_here);
  const ThreadBudget budget = SplitCores(cores, asked, config.data().workers());
  if (budget.compute > kMostThreadsPerCore * cores) {
    LogWarning(fmt::format(
        "{} compute threads on {}: they take turns, and every step waits for the last of them; "
        "--threads {} is faster",
        budget.compute, Counted(cores, "core"), cores));
  }
  RT_RETURN_IF_ERROR(CheckThreadsCanStart(
      budget.compute - 1 + budget.input + kWatch + others,
      fmt::format("{} and {}", Counted(budget.compute, "compute thread"),
                  others > 0 ? fmt::format("{} others", budget.input + others)
                             : fmt::format("{} to read images", budget.input))));
  SetNumComputeThreads(budget.compute);
  // Where ranks have cores of their own, other users of these cores are not ranks of this job.
  const auto tell = ranks_here <= cores || UsableCores() < OnlineCores()
                        ? [](const std::string& notice) { LogWarning(notice); }
                        : [](const std::string&) {};
  return ComputeThreads{.words = budget.Describe(), .watch = std::make_unique<CoreWatch>(tell)};
}

}  // namespace ringtail
