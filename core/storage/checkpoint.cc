#include "core/storage/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "core/logging.h"
#include "core/storage/file.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {
namespace {

using Metadata = std::map<std::string, std::string>;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kStepName = "step", kPartsName = "parts";  // in the metadata

std::string CheckpointFolder(const std::string& run_folder) {
  return run_folder + "/" + kCheckpointFolder;
}

std::string CheckpointName(int64_t step) {
  return fmt::format("{}{:08}{}", kPrefix, step, kSuffix);
}

std::string CheckpointPath(const std::string& run_folder, int64_t step) {
  return CheckpointFolder(run_folder) + "/" + CheckpointName(step);
}

std::string FailedCheckPath(const std::string& run_folder) {
  return CheckpointFolder(run_folder) + "/failed-check";
}

bool CheckHasFailed(const std::string& run_folder) {
  return access(FailedCheckPath(run_folder).c_str(), F_OK) == 0;
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
    // Only names in our own spelling, so that Path(step) finds the file again.
    if (step && CheckpointPath(run_folder, *step).ends_with("/" + name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

int64_t AgreedRanksOf(const Metadata& metadata) {
  const auto text = metadata.find(kAgreedRanksKey);
  return text == metadata.end() ? -1 : ParseStep(text->second).value_or(-1);
}

StatusOr<CheckpointHead> HeadOf(Metadata metadata, const std::string& path) {
  const auto text = metadata.find(std::string(kStepName));
  const std::optional<int64_t> step =
      text == metadata.end() ? std::nullopt : ParseStep(text->second);
  if (!step) {
    return InvalidArgument(fmt::format(
        "'{}' is not a checkpoint: it does not say its step; give the run's folder, or a {}*{} in "
        "its {}/",
        path, kPrefix, kSuffix, kCheckpointFolder));
  }
  CheckpointHead head{.step = *step, .path = path, .metadata = std::move(metadata)};
  if (head.metadata.contains(kAgreedRanksKey) && head.agreed_ranks() < 0) {
    return DataLoss(fmt::format("'{}': '{}' is no number of ranks: the checkpoint is damaged", path,
                                kAgreedRanksKey));
  }
  return head;
}

// The newest that `load` accepts; `warn` is told of those that are refused.
template <typename Found>
StatusOr<Found> Newest(const std::string& run_folder,
                       const std::function<StatusOr<Found>(const std::string& path)>& load,
                       const std::function<void(const std::string& message)>& warn) {
  StatusOr<std::vector<int64_t>> steps = SavedSteps(run_folder);
  if (!steps.ok() && steps.status().code() != StatusCode::kNotFound) return steps.status();
  if (!steps.ok() || steps->empty()) {
    return NotFound("there is no checkpoint in '" + CheckpointFolder(run_folder) + "'");
  }
  std::string reasons;
  for (auto step = steps->rbegin(); step != steps->rend(); ++step) {
    StatusOr<Found> found = load(CheckpointPath(run_folder, *step));
    const bool doubtful = found.ok() && found->agreed_ranks() == 0 && CheckHasFailed(run_folder);
    if (found.ok() && found->step == *step && !doubtful) {
      if (!reasons.empty()) warn(fmt::format("going back to the checkpoint of step {}", *step));
      return found;
    }
    const std::string reason =
        doubtful ? fmt::format(
                       "'{}' was written after ranks were lost, and the ranks had differed "
                       "before ('{}')",
                       found->path, FailedCheckPath(run_folder))
        : found.ok() ? fmt::format("'{}' holds step {}", found->path, found->step)
                     : found.status().message();
    warn("checkpoint refused: " + reason);
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  return DataLoss("no checkpoint in '" + CheckpointFolder(run_folder) + "' is intact: " + reasons);
}

void FailWritesBeyondFileSizeLimit() {
  struct sigaction action = {};
  if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

StatusOr<CheckpointHead> ReadCheckpointHead(const std::string& path) {
  RT_ASSIGN_OR_RETURN(Metadata metadata, ReadSafetensorsMetadata(path));
  return HeadOf(std::move(metadata), path);
}

StatusOr<Checkpoint> LoadCheckpoint(const std::string& path, CheckParts check,
                                    const std::function<void()>& on_piece) {
  RT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Read(path));
  if (!file.proven_intact()) {
    return InvalidArgument("'" + path +
                           "' is not a checkpoint of Ringtail: it has no checksums over all of it");
  }
  RT_ASSIGN_OR_RETURN(const CheckpointHead head, HeadOf(file.metadata(), path));
  Checkpoint checkpoint{head.step, path, std::move(file)};
  const auto parts = checkpoint.file.metadata().find(std::string(kPartsName));
  if (parts != checkpoint.file.metadata().end()) {
    auto parsed = ParsePartsText(parts->second);
    RT_RETURN_IF_ERROR(parsed.status().Annotate("'" + path + "'"));
    checkpoint.parts = *std::move(parsed);
  }
  for (int rank = 0;
       check == CheckParts::kYes && checkpoint.parts && rank < checkpoint.parts->world(); ++rank) {
    RT_RETURN_IF_ERROR(
        CheckPart(checkpoint.PartPath(rank), checkpoint.parts->ranks[rank], on_piece));
  }
  return checkpoint;
}

std::string Checkpoint::PartPath(int rank) const {
  RT_CHECK(parts.has_value(), "a part of a checkpoint that has none");
  return std::filesystem::path(path).replace_filename(
      PartName(step, rank, parts->world(), parts->tag));
}

int64_t Checkpoint::agreed_ranks() const { return AgreedRanksOf(file.metadata()); }
int64_t CheckpointHead::agreed_ranks() const { return AgreedRanksOf(metadata); }

StatusOr<CheckpointHead> FindNewestCheckpoint(const std::string& run_folder) {
  return Newest<CheckpointHead>(run_folder, ReadCheckpointHead, [](const std::string&) {});
}

StatusOr<Checkpoint> LoadNewestCheckpoint(const std::string& run_folder, CheckParts parts,
                                          const std::function<void()>& on_piece) {
  return Newest<Checkpoint>(
      run_folder, [&](const std::string& path) { return LoadCheckpoint(path, parts, on_piece); },
      LogWarning);
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
  CheckpointDirectory directory(lock);
  directory.DeleteOrphanParts();
  return directory;
}

Status CheckpointDirectory::Save(int64_t step, std::span<const TensorView> tensors,
                                 const std::map<std::string, std::string>& metadata, int keep,
                                 const CheckpointParts* parts) {
  RT_CHECK(keep >= 1, "one checkpoint is kept");
  Status status = Write(step, tensors, metadata, parts);
  const int64_t agreed_ranks = AgreedRanksOf(metadata);
  // A later one that is left would count again.
  const bool gone = status.ok() && DeleteOthers(step, agreed_ranks != 0, keep);
  if (gone && agreed_ranks > 0) ClearFailedCheck();
  if (parts != nullptr || status.ok()) DeleteOrphanParts();
  return status;
}

Status CheckpointDirectory::Write(int64_t step, std::span<const TensorView> tensors,
                                  const std::map<std::string, std::string>& metadata,
                                  const CheckpointParts* parts) {
  RT_CHECK(step >= 0, "a checkpoint has a step");
  std::map<std::string, std::string> with_step = metadata;
  const bool added = with_step.emplace(kStepName, std::to_string(step)).second;
  RT_CHECK(added, "the metadata of a checkpoint must not say 'step' itself");
  if (parts != nullptr) with_step[std::string(kPartsName)] = PartsText(*parts);
  const auto write = [&]() -> Status {
    const auto held = Hold();
    RT_RETURN_IF_ERROR(Status(held.status()).Annotate("writing '" + Path(step) + "'"));
    for (int rank = 0; parts != nullptr && rank < parts->world(); ++rank) {
      const std::string name = PartName(step, rank, parts->world(), parts->tag);
      RT_RETURN_IF_ERROR(held->Named(FindPart(held->Through(name), parts->ranks[rank])));
    }
    return held->Named(WriteSafetensors(held->Through(CheckpointName(step)), tensors, with_step));
  };
  Status status = write();
  if (status.code() == StatusCode::kNotFound) status = write();  // deleted meanwhile
  return status;
}

Status CheckpointDirectory::MarkFailedCheck(const std::string& sentence) {
  RT_RETURN_IF_ERROR(FolderNow().status());
  return WriteFileAtomic(FailedCheckPath(lock_.run_folder()), sentence + "\n");
}

// If the file cannot be deleted, checkpoints written after a loss of ranks are skipped: no more.
void CheckpointDirectory::ClearFailedCheck() const {
  const std::string path = FailedCheckPath(lock_.run_folder());
  if (!CheckHasFailed(lock_.run_folder())) return;
  // A power cut must not bring back what has been deleted, without the mark.
  const auto opened = FileDescriptor::Open(folder(), O_RDONLY | O_DIRECTORY);
  const Status synced = opened.ok() ? opened->SyncFolder() : opened.status();
  if (!synced.ok()) return LogWarning("'" + path + "' stays: " + synced.message());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    LogWarning(fmt::format("cannot delete '{}': {}", path, std::strerror(errno)));
  }
}

// Of `steps`, ascending. `agreed`: whether `newest` is loaded even if a check fails; if not, one
// that is stays. If so, and a check has failed, those that are refused for it neither stay nor
// count. Heads are read only where it depends on them.
std::set<int64_t> CheckpointDirectory::StepsToKeep(std::span<const int64_t> steps, int64_t newest,
                                                   bool agreed, int keep) const {
  std::set<int64_t> kept = {newest};
  const bool failed = agreed && CheckHasFailed(lock_.run_folder());
  for (auto next = steps.rbegin(); next != steps.rend(); ++next) {
    const int64_t step = *next;
    if (step >= newest) continue;
    const bool counts = std::ssize(kept) < keep;
    if (!counts && agreed) break;
    if (failed || !agreed) {
      const StatusOr<CheckpointHead> head = ReadCheckpointHead(Path(step));
      const bool refused = head.ok() && head->agreed_ranks() == 0;
      const bool loads = head.ok() && head->step == step && !refused;
      if (counts ? failed && refused : !loads) continue;
      agreed = agreed || loads;
    }
    kept.insert(step);
  }
  return kept;
}

// Whether all are gone that had to go.
bool CheckpointDirectory::DeleteOthers(int64_t newest, bool agreed, int keep) const {
  const StatusOr<std::vector<int64_t>> steps = Steps();
  if (!steps.ok()) {
    LogWarning("old checkpoints were not deleted: " + steps.status().message());
    return false;
  }
  bool gone = true;
  const std::set<int64_t> kept = StepsToKeep(*steps, newest, agreed, keep);
  for (const int64_t step : *steps) {
    if (kept.contains(step) || unlink(Path(step).c_str()) == 0 || errno == ENOENT) continue;
    gone = false;
    LogWarning(
        fmt::format("cannot delete the old checkpoint '{}': {}", Path(step), std::strerror(errno)));
  }
  return gone;
}

void CheckpointDirectory::DeleteOrphanParts() const {
  if (!lock_.Folder().ok()) return;  // the files there belong to another run
  const auto names = ListFolder(folder());
  if (!names.ok()) return LogWarning("old parts were not deleted: " + names.status().message());
  std::set<PartOf> parts, named;
  for (const std::string& name : *names) {
    if (const auto part = ParsePartName(name)) parts.insert(*part);
  }
  if (parts.empty()) return;
  std::vector<std::string> checkpoints = {BestCheckpointPath(lock_.run_folder())};
  const auto steps = Steps();
  if (!steps.ok()) return;
  for (const int64_t step : *steps) checkpoints.push_back(Path(step));
  for (const std::string& path : checkpoints) {
    const auto metadata = ReadSafetensorsMetadata(path);
    if (metadata.status().code() == StatusCode::kNotFound) continue;
    if (!metadata.ok()) return;  // its parts are not known
    const auto step = metadata->find(std::string(kStepName));
    const auto text = metadata->find(std::string(kPartsName));
    if (step == metadata->end() || text == metadata->end()) continue;
    const auto list = ParsePartsText(text->second);
    if (list.ok()) named.insert({ParseStep(step->second).value_or(-1), list->tag});
  }
  for (const std::string& name : *names) {
    const auto part = ParsePartName(name);
    if (!part || named.contains(*part)) continue;
    const std::string path = folder() + "/" + name;
    if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      LogWarning(fmt::format("cannot delete the old part '{}': {}", path, std::strerror(errno)));
    }
  }
}

// Parts that only the previous best checkpoint named are deleted with it.
Status CheckpointDirectory::SaveBest(int64_t step) {
  RT_ASSIGN_OR_RETURN(const std::string run_folder, lock_.Folder());
  RT_RETURN_IF_ERROR(LinkFileAtomic(Path(step), BestCheckpointPath(run_folder)));
  DeleteOrphanParts();
  return OkStatus();
}

StatusOr<std::string> CheckpointDirectory::FolderNow() const {
  RT_RETURN_IF_ERROR(lock_.Folder().status());
  RT_RETURN_IF_ERROR(MakeDirectories(folder()));
  return folder();
}

StatusOr<HeldFolder> CheckpointDirectory::Hold() const {
  auto held = lock_.Hold(kCheckpointFolder);
  if (held.status().code() != StatusCode::kNotFound) return held;
  RT_RETURN_IF_ERROR(FolderNow().status());
  return lock_.Hold(kCheckpointFolder);
}

std::string CheckpointDirectory::folder() const { return CheckpointFolder(lock_.run_folder()); }

StatusOr<std::vector<int64_t>> CheckpointDirectory::Steps() const {
  return SavedSteps(lock_.run_folder());
}

std::string CheckpointDirectory::Path(int64_t step) const {
  return CheckpointPath(lock_.run_folder(), step);
}

}  // namespace ringtail
