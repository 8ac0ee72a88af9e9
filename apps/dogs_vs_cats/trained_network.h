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

// From --checkpoint, a file or the folder of a run (apps/trainer/checkpoint/network_of_run.h).
StatusOr<TrainedModel> ReadNetwork(const NetworkFlags& flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_TRAINED_NETWORK_H_
