// Writes the last file of a run, the result of hours of work, and does not give up at the first
// error.
//
//   <run>/final.safetensors   tried repeatedly, until `patience` is over or a signal comes
//   $TMPDIR, /dev/shm, /tmp   then tried in a new folder there; the error names it
//
// So a disk that is full for a moment, a share that is not mounted, or a folder that was deleted
// (core/storage/run_lock.h) costs minutes and not the network.
// Thread-safety: functions without state. Errors: the last one in the run's folder; its message
// names the place where the network is instead.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_FINAL_NETWORK_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_FINAL_NETWORK_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/run_directory.h"
#include "core/status.h"

namespace ringtail {

// The folders to try when the run's own cannot be written, the best first.
std::vector<std::string> OtherPlaces();

struct FinalNetworkOptions {
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  std::chrono::milliseconds pause = std::chrono::seconds(2);  // between two attempts
  std::vector<std::string> other_places = OtherPlaces();
  std::function<bool()> stop = [] { return false; };  // ends the waiting, not the last attempts
};

// `write` writes the network to the path it is given.
using NetworkWriter = std::function<Status(const std::string& path)>;
Status WriteFinalNetwork(RunDirectory* directory, const NetworkWriter& write,
                         const FinalNetworkOptions& options = {});

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_FINAL_NETWORK_H_
