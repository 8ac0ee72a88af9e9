#include "core/checkpoint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>

#include "core/file.h"
#include "core/logging.h"

namespace ringtail {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kStepName = "step";  // in the metadata

std::string CheckpointFolder(const std::string& run_folder) {
  return run_folder + "/" + kCheckpointFolder;
}

std::string CheckpointPath(const std::string& run_folder, int64_t step) {
  return fmt::format("{}/{}{:08}{}", CheckpointFolder(run_folder), kPrefix, step, kSuffix);
}

std::optional<int64_t> ParseStep(std::string_view digits) {
  int64_t step = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, step);
  if (error != std::errc() || stop != end || step < 0) return std::nullopt;
  return step;
}

std::optional<int64_t> StepOfName(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return ParseStep(name);
}

StatusOr<std::vector<int64_t>> SavedSteps(const std::string& run_folder) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      ListFolder(CheckpointFolder(run_folder)));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    const std::optional<int64_t> step = StepOfName(name);
    // Only names that we would write ourselves, so that Path(step) finds the file again.
    if (step && CheckpointPath(run_folder, *step).ends_with("/" + name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void FailWritesBeyondFileSizeLimit() {
  struct sigaction action = {};
  if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

StatusOr<Checkpoint> LoadCheckpoint(const std::string& path) {
  RT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Read(path));
  if (!file.proven_intact()) {
    return InvalidArgument("'" + path +
                           "' is not a checkpoint of Ringtail: it has no checksums over all of it");
  }
  const auto text = file.metadata().find(std::string(kStepName));
  const std::optional<int64_t> step =
      text == file.metadata().end() ? std::nullopt : ParseStep(text->second);
  if (!step) {
    return InvalidArgument(fmt::format(
        "'{}' is not a checkpoint: it does not say its step; give the run's folder, or a {}*{} in "
        "its {}/",
        path, kPrefix, kSuffix, kCheckpointFolder));
  }
  return Checkpoint{*step, path, std::move(file)};
}

StatusOr<Checkpoint> LoadNewestCheckpoint(const std::string& run_folder) {
  StatusOr<std::vector<int64_t>> steps = SavedSteps(run_folder);
  if (!steps.ok() && steps.status().code() != StatusCode::kNotFound) return steps.status();
  if (!steps.ok() || steps->empty()) {
    return NotFound("there is no checkpoint in '" + CheckpointFolder(run_folder) + "'");
  }
  std::string reasons;
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    StatusOr<Checkpoint> checkpoint = LoadCheckpoint(CheckpointPath(run_folder, *step));
    if (checkpoint.ok() && checkpoint->step == *step) {
      if (!reasons.empty())
        LogWarning(fmt::format("going back to the checkpoint of step {}", *step));
      return checkpoint;
    }
    const std::string reason =
        checkpoint.ok() ? fmt::format("'{}' holds step {}", checkpoint->path, checkpoint->step)
                        : checkpoint.status().message();
    LogWarning("checkpoint refused: " + reason);
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return DataLoss("no checkpoint in '" + CheckpointFolder(run_folder) + "' is intact: " + reasons);
}

std::string BestCheckpointPath(const std::string& run_folder) {
  return CheckpointFolder(run_folder) + "/best" + std::string(kSuffix);
}

StatusOr<CheckpointDirectory> CheckpointDirectory::Open(const RunLock& lock) {
  const std::string& run_folder = lock.run_folder();
  RT_RETURN_IF_ERROR(MakeDirectories(CheckpointFolder(run_folder)));
  RT_RETURN_IF_ERROR(RemoveTemporaryFiles(run_folder));
  RT_RETURN_IF_ERROR(RemoveTemporaryFiles(CheckpointFolder(run_folder)));
  FailWritesBeyondFileSizeLimit();
  return CheckpointDirectory(run_folder);
}

Status CheckpointDirectory::Save(int64_t step, std::span<const TensorView> tensors,
                                 const std::map<std::string, std::string>& metadata, int keep) {
  RT_CHECK(step >= 0 && keep >= 1, "a checkpoint has a step, and one is kept");
  std::map<std::string, std::string> with_step = metadata;
  const bool added = with_step.emplace(kStepName, std::to_string(step)).second;
  RT_CHECK(added, "the metadata of a checkpoint must not say 'step' itself");
  RT_RETURN_IF_ERROR(WriteSafetensors(Path(step), tensors, with_step));
  DeleteOthers(step, keep);
  return OkStatus();
}

void CheckpointDirectory::DeleteOthers(int64_t newest, int keep) const {
  const StatusOr<std::vector<int64_t>> steps = Steps();
  if (!steps.ok()) {
    LogWarning("old checkpoints were not deleted: " + steps.status().message());
    return;
  }
  const auto end = std::upper_bound(steps->begin(), steps->end(), newest);
  const auto kept = end - std::min<ptrdiff_t>(keep, end - steps->begin());
  for (auto step = steps->begin(); step != steps->end(); ++step) {
    if (step >= kept && step < end) continue;
    if (unlink(Path(*step).c_str()) != 0 && errno != ENOENT) {
      LogWarning(fmt::format("cannot delete the old checkpoint '{}': {}", Path(*step),
                             std::strerror(errno)));
    }
  }
}

Status CheckpointDirectory::SaveBest(int64_t step) {
  return LinkFileAtomic(Path(step), BestCheckpointPath(run_folder_));
}

StatusOr<std::vector<int64_t>> CheckpointDirectory::Steps() const {
  return SavedSteps(run_folder_);
}

std::string CheckpointDirectory::Path(int64_t step) const {
  return CheckpointPath(run_folder_, step);
}

}  // namespace ringtail
