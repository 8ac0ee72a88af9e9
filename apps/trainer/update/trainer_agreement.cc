// What a trainer does so that no wrong state is kept: it compares before it writes, and goes back
// to the last checkpoint that all ranks agreed on if one of them is found to be wrong.
#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "apps/trainer/trainer.h"
#include "core/logging.h"

namespace ringtail {

// A difference leaves its mark in the run's folder, whatever becomes of this process.
Status Trainer::CheckState() {
  if (world_->alone()) return OkStatus();  // spares the checksums
  StateChecksums own = state_.Checksums();
  if (compression_ != nullptr) own.optimizer = compression_->Checksum(own.optimizer);
  Status status = agreement_.Check(own);
  if (!agreement_.failed() || directory_ == nullptr) return status;
  const Status marked = directory_->checkpoints().MarkFailedCheck(
      fmt::format("after step {}: {}", step(), agreement_.finding()));
  if (!marked.ok()) LogWarning("that the ranks differ is not on the disk: " + marked.message());
  return status;
}

// On rank 0: takes its state from there, or says why not ("+" or "-" and the reason).
StatusOr<std::string> Trainer::ReadAgreedCheckpoint() {
  if (!world_->leads()) return std::string();
  std::string path = agreed_path_;
  if (!path.empty()) {
    const auto folder = directory_->Folder();
    if (!folder.ok()) return "-" + folder.status().message();
    path = std::filesystem::path(directory_->checkpoints().folder()) / path;  // unless absolute
  }
  // A run that goes on from what was written after a loss has none of its own yet: then an older
  // one, but none of another course that went further.
  auto checkpoint = path.empty() ? LoadNewestCheckpoint(directory_->path()) : LoadCheckpoint(path);
  if (path.empty() &&
      (!checkpoint.ok() || checkpoint->agreed_ranks() < 1 || checkpoint->step > step())) {
    return std::string("-there is no checkpoint yet that all agreed on");
  }
  if (!checkpoint.ok()) return "-" + checkpoint.status().message();
  Status status = state_.Restore(checkpoint->file);
  if (status.ok()) {
    auto saved = GradientCompression::Read(*checkpoint);
    status = saved.status();
    if (saved.ok()) saved_compression_ = *std::move(saved);
  }
  return status.ok() ? "+" : "-" + status.message();
}

// From the last agreed checkpoint on, as if the run had been resumed from it, all ranks do what
// they did before: the bits are those of a run that was never disturbed.
Status Trainer::GoBack(const Status& cause) {
  if (config_.dist().on_disagreement() == DistConfig::STOP || !agreement_.can_go_back()) {
    return cause;
  }
  const ScopedPhase reading(world_->progress(), Phase::kCheckpoint);  // files of any size
  const int64_t reached = step();
  RT_ASSIGN_OR_RETURN(std::string read, ReadAgreedCheckpoint());
  RT_ASSIGN_OR_RETURN(read, world_->ShareText(std::move(read)));
  if (read != "+") return cause.Annotate(read.substr(1));
  RT_RETURN_IF_ERROR(world_->ShareState(&state_));
  if (world_->leads()) {
    LogWarning(fmt::format(
        "after step {} {}: a fault of its memory, or results that depend on the machine; all ranks "
        "go back to step {}, the last that they agreed on, and repeat what came after it "
        "(a second time ends the run)",
        reached, agreement_.finding(), step()));
  }
  saved_step_ = offered_step_ = step();
  if (directory_ != nullptr) {
    RT_RETURN_IF_ERROR(directory_->Begin(config_, data_->bad, step()));
  }
  buffers_before_.clear();
  newest_.clear();
  noise_scale_ = NoiseScale();
  gradients_.reset();  // EnterPhase makes them anew, at this step
  loader_.reset();
  RT_RETURN_IF_ERROR(BeginCompression());
  agreement_.Restart();
  return CheckState();
}

}  // namespace ringtail
