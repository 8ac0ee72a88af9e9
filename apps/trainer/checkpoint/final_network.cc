#include "apps/trainer/checkpoint/final_network.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>
#include <utility>

#include "core/logging.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

Status TryFinal(RunDirectory* directory, const NetworkWriter& write) {
  RT_ASSIGN_OR_RETURN(const std::string folder, directory->Folder());
  return write(folder + "/" + kFinalName);
}

// Waiting does not help if another run has taken the folder's name.
bool MayPass(const Status& status) {
  return status.code() != StatusCode::kAlreadyExists &&
         status.code() != StatusCode::kFailedPrecondition;
}

void Pause(milliseconds pause, const std::function<bool()>& stop) {
  constexpr milliseconds kSlice{100};
  for (const auto end = Clock::now() + pause; Clock::now() < end && !stop();) {
    std::this_thread::sleep_for(std::min(kSlice, pause));
  }
}

Status TryUntilItWorks(RunDirectory* directory, const NetworkWriter& write,
                       const FinalNetworkOptions& options) {
  const auto end = Clock::now() + options.patience;
  Status status = TryFinal(directory, write);
  if (status.ok() || !MayPass(status)) return status;
  LogError(fmt::format("{}; trying again for {:.0f} s: make room there (a signal ends the waiting)",
                       status.message(), std::chrono::duration<double>(options.patience).count()));
  while (!status.ok() && MayPass(status) && Clock::now() < end && !options.stop()) {
    Pause(options.pause, options.stop);
    status = TryFinal(directory, write);
  }
  return status;
}

// In a new folder: any user may write to these places.
StatusOr<std::string> WriteTo(const std::string& place, const NetworkWriter& write) {
  std::string folder = place + "/ringtail-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return ErrnoStatus(errno, fmt::format("cannot make a folder in '{}'", place));
  }
  const std::string path = folder + "/" + kFinalName;
  if (const Status status = write(path); !status.ok()) {
    rmdir(folder.c_str());
    return status;
  }
  return path;
}

}  // namespace

std::vector<std::string> OtherPlaces() {
  std::vector<std::string> places;
  const char* const set = std::getenv("TMPDIR");
  if (set != nullptr && *set != '\0') places.emplace_back(set);
  places.emplace_back("/dev/shm");
  places.emplace_back("/tmp");
  return places;
}

Status WriteFinalNetwork(RunDirectory* directory, const NetworkWriter& write,
                         const FinalNetworkOptions& options) {
  Status status = TryUntilItWorks(directory, write, options);
  if (status.ok()) return status;
  std::string tried;
  for (const std::string& place : options.other_places) {
    const auto path = WriteTo(place, write);
    if (path.ok()) {
      return status.Annotate(fmt::format(
          "the trained network is in '{}': copy it from there before the machine restarts", *path));
    }
    tried += fmt::format("; {}", path.status().message());
  }
  return {status.code(), fmt::format("the trained network is lost: {}{}", status.message(), tried)};
}

}  // namespace ringtail
