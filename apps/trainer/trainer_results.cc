// What a trainer keeps of its run: evaluations, checkpoints, metrics, the trained network. On ranks
// other than 0 nothing is written, but every rank takes its part in evaluations.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "apps/trainer/checkpoint/final_network.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/trainer.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "core/utf8.h"

namespace ringtail {

void Trainer::Record(const Metrics& metrics) {
  if (metrics.kind == Metrics::Kind::kStep) newest_.clear();
  newest_.push_back(metrics);
  if (directory_ != nullptr) directory_->Record(metrics);
}

// A checkpoint between step and evaluation leaves the evaluation due, so a resumed run makes up
// for it.
Status Trainer::EvaluateIfDue() {
  if (!plan_.EvaluationIsDue(step()) || state_.progress.evaluated_step == step()) return OkStatus();
  const Status status = Evaluate();
  return status.code() == StatusCode::kCancelled ? OkStatus() : status;
}

// Each validation image is looked at by one rank, and a rank that trains on more of them looks at
// more of them.
std::vector<int64_t> Trainer::EvaluationShare() const {
  const std::vector<int64_t>& all = data_->split.validation;
  const auto before = [&](int64_t row) {
    return all.begin() + row * std::ssize(all) / division_.own.global_batch;
  };
  return {before(division_.own.first_row), before(division_.own.first_row + division_.own.batch)};
}

// The result over all ranks.
StatusOr<EvaluationResult> Trainer::EvaluateShare() {
  const ScopedPhase evaluation(world_->progress(), Phase::kEvaluation);
  const std::vector<int64_t> share = EvaluationShare();
  EvaluationOptions options = EvaluationOptionsOf(config_, plan_.PhaseAt(step() - 1).image_size);
  options.stop_on_signal = world_->alone();
  RT_ASSIGN_OR_RETURN(const ImageLogits logits, ComputeLogits(state_.model(), *data_->dataset,
                                                              share, config_.data(), options));
  const EvaluationResult result = Score(logits, *data_->dataset, share);
  std::array<double, 3> sums{result.loss_sum, static_cast<double>(result.correct),
                             static_cast<double>(result.images)};
  RT_RETURN_IF_ERROR(world_->Sum(sums));
  return EvaluationResult{.loss_sum = sums[0],
                          .correct = static_cast<int64_t>(sums[1]),
                          .images = static_cast<int64_t>(sums[2])};
}

Status Trainer::Evaluate() {
  TrainingProgress& progress = state_.progress;
  const Stopwatch watch;
  bool best = false;
  if (!data_->split.validation.empty()) {
    if (state_.average() != nullptr) state_.average()->Swap();
    const auto result = EvaluateShare();
    if (state_.average() != nullptr) state_.average()->Swap();
    RT_RETURN_IF_ERROR(Status(result.status()));
    best = result->accuracy() > progress.best_accuracy;
    if (best) {
      progress.best_accuracy = result->accuracy();
      progress.best_step = step();
    }
    Metrics metrics;
    metrics.kind = Metrics::Kind::kEvaluation;
    metrics.step = step();
    metrics.epoch = plan_.EpochAt(step());
    metrics.loss = result->loss();
    metrics.accuracy = result->accuracy();
    metrics.images_per_s = static_cast<double>(result->images) / watch.Seconds();
    Record(metrics);
    if (observer_ != nullptr) observer_->OnEvaluation(metrics, best);
  }
  progress.evaluated_step = step();
  return SaveCheckpoint(best);
}

// All ranks hold the same, each writes what it has of its own, and rank 0 the rest as the last.
// That it cannot be written is no error.
Status Trainer::SaveCheckpoint(bool best) {
  offered_step_ = step();
  RT_RETURN_IF_ERROR(CheckState());
  WrittenParts written{.status = state_.CheckFinite(), .parts = std::nullopt};  // as on all ranks
  if (compression_ != nullptr && written.status.ok()) {
    const CheckpointDirectory* const own =
        directory_ != nullptr ? &directory_->checkpoints() : nullptr;
    RT_ASSIGN_OR_RETURN(written, compression_->WriteParts(step(), own));
  }
  WriteCheckpoint(best, world_->size(), written);
  return OkStatus();
}

void Trainer::WriteCheckpoint(bool best, int agreed_ranks, const WrittenParts& written) {
  if (directory_ == nullptr) return;
  const ScopedPhase saving(world_->progress(), Phase::kCheckpoint);
  CheckpointDirectory& checkpoints = directory_->checkpoints();
  Status status = written.status;
  if (status.ok()) {
    std::vector<TensorView> tensors = state_.Tensors();
    if (compression_ != nullptr && agreed_ranks > 0) {
      const std::vector<TensorView> shared = compression_->Tensors();
      tensors.insert(tensors.end(), shared.begin(), shared.end());
    }
    status = checkpoints.Save(step(), tensors, Metadata(agreed_ranks),
                              config_.train().keep_checkpoints(),
                              written.parts ? &*written.parts : nullptr);
  } else {
    checkpoints.DeleteOrphanParts();
  }
  if (status.ok()) saved_step_ = step();
  if (status.ok() && agreed_ranks > 0) agreed_path_ = PathOfAgreed(checkpoints.Path(step()));
  if (status.ok() && best) status = checkpoints.SaveBest(step());
  if (status.ok()) {
    directory_->CheckpointSaved();
  } else {
    directory_->CheckpointFailed(step(), saved_step_, status);
  }
}

Status Trainer::SaveFinal() {
  if (directory_ == nullptr) return OkStatus();
  const ScopedPhase saving(world_->progress(), Phase::kCheckpoint);
  if (state_.average() != nullptr) state_.average()->Swap();
  FinalNetworkOptions options;
  options.stop = [] { return StopSignal() != 0; };
  Status status = WriteFinalNetwork(
      directory_,
      [&](const std::string& path) {
        return WriteModelFile(path, state_.model()->arena(), Metadata(world_->size()));
      },
      options);
  if (state_.average() != nullptr) state_.average()->Swap();
  return status;
}

// Of the last step that was whole: one that was broken off has moved the running statistics alone.
// Other ranks cannot be asked any more.
void Trainer::SaveAfterFailure() {
  if (agreement_.failed()) return;
  std::copy(buffers_before_.begin(), buffers_before_.end(),
            state_.model()->arena().buffer_values().begin());
  if (step() > 0 && saved_step_ != step()) {
    WriteCheckpoint(/*best=*/false, world_->alone() ? 1 : 0,
                    {.status = state_.CheckFinite(), .parts = std::nullopt});
  }
}

void Trainer::SaveInto(RunDirectory* directory) {
  if (agreement_.failed()) return;
  const auto newest = LoadNewestCheckpoint(directory->path());
  if (newest.ok() && newest->step >= step()) return;
  directory_ = directory;
  SaveAfterFailure();
  if (saved_step_ == step()) directory->RecordLate(newest_);
  directory_ = nullptr;
}

std::map<std::string, std::string> Trainer::Metadata(int agreed_ranks) const {
  std::map<std::string, std::string> metadata =
      ModelMetadata(config_, data_->dataset->class_names());
  metadata.merge(state_.Metadata());
  AddNumerics(CurrentNumerics(), &metadata);
  if (compression_ != nullptr) compression_->AddMetadata(&metadata);
  AddDivision(division_.all, &metadata);
  metadata[kAgreedRanksKey] = std::to_string(agreed_ranks);
  if (!failure_.empty()) {
    metadata[kWrittenAfterKey] = failure_.substr(0, ValidUtf8Prefix(failure_));
  }
  metadata[kFingerprintKey] = fmt::format("{:016x}", data_->fingerprint);
  metadata[kContentsKey] = fmt::format("{:016x}", data_->contents);
  metadata[kImagesKey] = data_->Counts();
  return metadata;
}

}  // namespace ringtail
