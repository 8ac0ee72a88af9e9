#include "apps/dogs_vs_cats/world_flags.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "apps/rank_flags.h"

namespace ringtail {
namespace {

constexpr int kMostImages = 65536;

CLI::Option* AddLocalBatch(CLI::App* app, WorldFlags* flags) {
  const auto take = [flags](const std::string& text) {
    flags->balance = text == "auto";
    if (flags->balance) return;
    if (!CLI::Range(1, kMostImages)(text).empty()) {
      throw CLI::ValidationError(
          "--local-batch",
          fmt::format("'{}' is neither auto nor a number from 1 to {}", text, kMostImages));
    }
    flags->local_batch = std::stoll(text);
  };
  return app
      ->add_option_function<std::string>(
          "--local-batch", take,
          "Images per step on this rank (default: train.batch; for a resumed run, as before); "
          "ranks "
          "may differ. auto, on all ranks: in proportion to speeds measured at the start")
      ->type_name("N|auto");
}

}  // namespace

void AddWorldFlags(CLI::App* app, WorldFlags* flags) {
  constexpr char kGroup[] =
      "Several ranks (by default as the environment of ringtail_launch, srun, mpirun, torchrun or "
      "Kubernetes says)";
  AddRankFlags(app, kGroup, &flags->rank);
  app->add_option("--world", flags->rank.world_size, "The number of ranks")->group(kGroup);
  AddLocalBatch(app, flags)->group(kGroup);
  app->add_option(
         "--plan", flags->plan,
         "auto: before the first step, measure the ranks and the network, and choose the "
         "fastest way to train that is as accurate as one host; config: as the config says "
         "(default: dist.plan)")
      ->type_name("auto|config")
      ->check(CLI::IsMember({"auto", "config"}))
      ->group(kGroup);
  AddSecurityFlags(app, kGroup, &flags->options.security, &flags->options.token_file);
}

}  // namespace ringtail
