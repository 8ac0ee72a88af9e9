#include "apps/dogs_vs_cats/trained_network.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "apps/trainer/checkpoint/run_directory.h"
#include "core/logging.h"
#include "core/storage/checkpoint.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

StatusOr<std::string> NetworkOfRun(const std::string& folder) {
  const std::string final_path = folder + "/" + kFinalName;
  if (Exists(final_path)) return final_path;
  const std::string best = BestCheckpointPath(folder);
  if (Exists(best)) return best;
  const auto newest = LoadNewestCheckpoint(folder, CheckParts::kNo);
  if (newest.ok()) return newest->path;
  if (newest.status().code() != StatusCode::kNotFound) return newest.status();
  return NotFound(
      fmt::format("there is no network in the folder '{}': neither {} nor a checkpoint; "
                  "give the folder of a run, or a file that `train` wrote",
                  folder, kFinalName));
}

}  // namespace

StatusOr<std::string> NetworkFile(const std::string& path) {
  if (!IsFolder(path)) return path;
  auto file = NetworkOfRun(path);
  if (file.ok()) LogInfo(fmt::format("the network is {}", *file));
  return file;
}

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
