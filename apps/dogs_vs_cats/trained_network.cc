#include "apps/dogs_vs_cats/trained_network.h"

#include <CLI/CLI.hpp>

#include "apps/trainer/checkpoint/network_of_run.h"

namespace ringtail {

void AddNetworkFlags(CLI::App* app, NetworkFlags* flags) {
  AddSetFlag(app, &flags->config);
  AddThreadsFlag(app, &flags->config);
  app->add_option("--checkpoint", flags->checkpoint,
                  "final.safetensors, any checkpoint, or the folder of a run")
      ->type_name("PATH")
      ->required();
}

StatusOr<TrainedModel> ReadNetwork(const NetworkFlags& flags) {
  RT_ASSIGN_OR_RETURN(const std::string file, NetworkFile(flags.checkpoint));
  return ReadModelFile(file, flags.config.set);
}

}  // namespace ringtail
