#include "apps/dogs_vs_cats/world_flags.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

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
          "Images per step on this rank (default: train.batch; as before, when a run goes on); "
          "ranks may differ. auto, on all ranks: in proportion to speeds measured at the start")
      ->type_name("N|auto");
}

}  // namespace

void AddWorldFlags(CLI::App* app, WorldFlags* flags) {
  constexpr char kGroup[] =
      "Several ranks (found out from the environment of ringtail_launch, "
      "srun, mpirun, torchrun or Kubernetes, if not given)";
  RankFlags& rank = flags->rank;
  SecurityOptions& security = flags->options.security;
  app->add_option("--rank", rank.rank, "Which rank this process is, from 0")->group(kGroup);
  app->add_option("--world", rank.world_size, "How many ranks there are")->group(kGroup);
  app->add_option("--local-rank", rank.local_rank, "Which of this host's ranks this is")
      ->group(kGroup);
  app->add_option("--master", rank.master, "Where rank 0 is, the same on all ranks")
      ->type_name("HOST[:PORT]")
      ->group(kGroup);
  AddLocalBatch(app, flags)->group(kGroup);
  app->add_option(
         "--token-file", flags->options.token_file,
         "The job's secret, readable by you alone (default: what is in RINGTAIL_TOKEN; else "
         "the file that RINGTAIL_TOKEN_FILE names)")
      ->type_name("FILE")
      ->group(kGroup);
  app->add_option("--tls-cert", security.tls_cert, "This rank's certificate")
      ->type_name("PEM")
      ->group(kGroup);
  app->add_option("--tls-key", security.tls_key, "Its key")->type_name("PEM")->group(kGroup);
  app->add_option("--tls-ca", security.tls_ca, "The authority of all ranks' certificates")
      ->type_name("PEM")
      ->group(kGroup);
  app->add_flag("--insecure", security.insecure,
                "Without TLS beyond this machine: on a network where nobody listens")
      ->group(kGroup);
}

}  // namespace ringtail
