// The last file of a run, which hours of work end in: writing it is not given up at the first error.
//
//   <run>/final.safetensors   again and again, for as long as `patience` says or until a signal
//   $TMPDIR, /dev/shm, /tmp   then in a folder of its own there, and the error says where
//
// A disk that is full for a moment, a share that is away and a folder that was deleted
// (core/storage/run_lock.h) so cost minutes and not the network. Thread-safety: functions without state.
// Errors: that of the last try in the run's folder; its message names the place where the network is
// instead.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_FINAL_NETWORK_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_FINAL_NETWORK_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/run_directory.h"
#include "core/status.h"

namespace ringtail {

// The folders that are left when that of the run takes nothing, the best first.
std::vector<std::string> OtherPlaces();

struct FinalNetworkOptions {
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  std::chrono::milliseconds pause = std::chrono::seconds(2);  // between two tries
  std::vector<std::string> other_places = OtherPlaces();
  std::function<bool()> stop = [] { return false; };  // ends the waiting, not the writing
};

// `write` writes the network to the path it is given.
using NetworkWriter = std::function<Status(const std::string& path)>;
Status WriteFinalNetwork(RunDirectory* directory, const NetworkWriter& write,
                         const FinalNetworkOptions& options = {});

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_FINAL_NETWORK_H_
