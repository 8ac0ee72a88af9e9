// The trained network that a verb works with: its flags (--checkpoint, --set, --threads) and its
// file. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_TRAINED_NETWORK_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_TRAINED_NETWORK_H_

#include <string>

#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "core/status.h"

namespace ringtail {

struct NetworkFlags {
  ConfigFlags config;  // --set changes the config that the network was trained with
  std::string checkpoint;
};
void AddNetworkFlags(CLI::App* app, NetworkFlags* flags);

// --checkpoint if that is a file. If it is the folder of a run: final.safetensors, else the best
// checkpoint, else the newest; a log line names the choice. NotFound if there is none.
StatusOr<std::string> NetworkFile(const std::string& path);
// From that file.
StatusOr<TrainedModel> ReadNetwork(const NetworkFlags& flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_TRAINED_NETWORK_H_
