#include "apps/trainer/save_for_rank_zero.h"

#include <fmt/core.h>

#include <memory>
#include <thread>

#include "apps/trainer/checkpoint/run_directory.h"
#include "core/logging.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

constexpr std::chrono::milliseconds kBetweenTries{10};

StatusOr<std::unique_ptr<RunDirectory>> OpenOnceFree(const std::string& run_folder,
                                                     Progress* progress,
                                                     std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  auto directory = RunDirectory::Open(run_folder);
  while (directory.status().code() == StatusCode::kAlreadyExists &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetweenTries);
    progress->Tick();
    directory = RunDirectory::Open(run_folder);
  }
  return directory;
}

}  // namespace

void SaveForRankZero(const std::string& run_folder, RunKeeper* keeper, Progress* progress,
                     std::chrono::milliseconds patience) {
  if (!IsFolder(run_folder)) return;
  // One that waits for others would be ended (apps/session/last_word.h).
  const ScopedPhase saving(progress, Phase::kCheckpoint);
  const auto directory = OpenOnceFree(run_folder, progress, patience);
  if (directory.ok()) return keeper->SaveInto(directory->get());
  LogWarning(fmt::format("this rank writes no checkpoint in place of rank 0: {}",
                         directory.status().message()));
}

}  // namespace ringtail
