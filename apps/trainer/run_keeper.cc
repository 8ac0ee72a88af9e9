#include "apps/trainer/run_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/trainer/checkpoint/final_network.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/early_statistics.h"
#include "apps/trainer/pipeline/stage_state.h"
#include "apps/trainer/world_evaluation.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "core/stopwatch.h"
#include "core/storage/file.h"
#include "core/trace.h"

namespace ringtail {

Status RunKeeper::Begin(const ResumePoint& point) {
  const int64_t step = point.empty() ? -1 : point.progress.step;
  knows_saved_ = point.in_memory.has_value();
  saved_step_ = knows_saved_ ? point.in_memory->saved_step : step;
  if (point.agreed_ranks > 0) agreed_path_ = PathOfAgreed(point.path);
  if (directory_ == nullptr) return OkStatus();
  RT_RETURN_IF_ERROR(directory_->Begin(generation_->config(), generation_->data().bad, step));
  if (!point.tensors || point.progress.best_step != step) return OkStatus();
  if (const Status named = NameBest(point); !named.ok()) {
    LogWarning(
        fmt::format("the best checkpoint is that of step {}, but best.safetensors is not: {}", step,
                    named.message()));
  }
  return OkStatus();
}

// For a run that was killed between writing its best checkpoint and naming it the best. That file
// is named and none is written: the state of this world may be another one, as one rank merges the
// round of several that travelled.
Status RunKeeper::NameBest(const ResumePoint& point) {
  const ScopedPhase saving(generation_->world->progress(), Phase::kCheckpoint);
  const int64_t step = point.progress.step;
  CheckpointDirectory& checkpoints = directory_->checkpoints();
  RT_ASSIGN_OR_RETURN(const std::string run_folder, directory_->Folder());
  const auto is = [&point](const std::string& path) {
    std::error_code ignored;  // it may not exist
    return std::filesystem::equivalent(point.path, path, ignored);
  };
  if (is(BestCheckpointPath(run_folder))) return OkStatus();
  if (!is(checkpoints.Path(step))) RT_RETURN_IF_ERROR(TakeIn(point));
  return checkpoints.SaveBest(step);
}

// Of another folder, or another name.
Status RunKeeper::TakeIn(const ResumePoint& point) {
  const CheckpointDirectory& checkpoints = directory_->checkpoints();
  const SavedParts& saved = point.parts;
  std::error_code ignored;
  const bool here = std::filesystem::equivalent(saved.folder, checkpoints.folder(), ignored);
  for (int rank = 0; !here && rank < saved.parts.world(); ++rank) {
    const std::string name = PartName(saved.step, rank, saved.parts.world(), saved.parts.tag);
    RT_RETURN_IF_ERROR(
        LinkFileAtomic(saved.folder + "/" + name, checkpoints.folder() + "/" + name));
  }
  return LinkFileAtomic(point.path, checkpoints.Path(point.progress.step));
}

void RunKeeper::Keep(UpdatePath* update) {
  update_ = update;
  if (const int64_t step = generation_->step(); step > 0) {
    // Every rank knows now of the checkpoint that rank 0 continues from.
    offered_step_ = step;
    if (!knows_saved_) saved_step_ = step;
  }
  if (directory_ != nullptr) directory_->CheckRoom(CheckpointSizes());
}

// `agreed`: no rank is lost.
std::vector<TensorView> RunKeeper::Tensors(bool agreed) const {
  std::vector<TensorView> tensors = generation_->state().Tensors();
  whole_.Complete(&tensors);
  const std::vector<TensorView> shared = agreed ? update_->Tensors() : update_->TensorsAfterLoss();
  tensors.insert(tensors.end(), shared.begin(), shared.end());
  return tensors;
}

// Bytes of each file of a checkpoint: rank 0's, and what each rank has of its own.
std::vector<int64_t> RunKeeper::CheckpointSizes() const {
  std::vector<int64_t> files(1);
  for (const TensorView& tensor : Tensors(true)) files[0] += std::ssize(tensor.data);
  for (const ShardedTensor& own : generation_->state().Sharded()) {
    const int64_t others = NumElements(own.spec->WholeShape()) - std::ssize(own.values);
    files[0] += others * static_cast<int64_t>(sizeof(float));
  }
  if (generation_->link != nullptr) files[0] = WholeBytes(files[0]);
  const std::vector<int64_t> parts = update_->PartBytes();
  files.insert(files.end(), parts.begin(), parts.end());
  return files;
}

// Of the state of all stages, where this one's has `own`: in proportion to their weights.
int64_t RunKeeper::WholeBytes(int64_t own) const {
  const Model& model = *generation_->state().model();
  const double weights = static_cast<double>(std::max<int64_t>(model.CountParameters(), 1));
  const auto all = static_cast<double>(model.whole()->CountParameters());
  return static_cast<int64_t>(static_cast<double>(own) * (all / weights));
}

std::string RunKeeper::PathOfAgreed(const std::string& path) const {
  const std::filesystem::path file = std::filesystem::absolute(path);
  std::error_code ignored;
  const bool own =
      directory_ != nullptr &&
      std::filesystem::equivalent(file.parent_path(), directory_->checkpoints().folder(), ignored);
  return own ? file.filename() : file;
}

void RunKeeper::Record(const Metrics& metrics) {
  if (metrics.kind == Metrics::Kind::kStep) {
    newest_.clear();
    rate_guard_.AddStep(metrics.loss, metrics.learning_rate);
  }
  newest_.push_back(metrics);
  if (directory_ != nullptr) directory_->Record(metrics);
}

bool RunKeeper::KeepsAlone() const {
  return generation_->world->alone() || (update_ != nullptr && update_->leader_keeps());
}

StatusOr<EvaluationResult> RunKeeper::ScoreValidation() const {
  const ScopedSpan span("evaluate", "run");
  return KeepsAlone() ? EvaluateAlone(*generation_) : EvaluateTogether(*generation_);
}

Status RunKeeper::Evaluate() {
  if (KeepsAlone() && !generation_->world->leads()) return OkStatus();
  TrainingProgress& progress = generation_->progress();
  const Stopwatch watch;
  bool best = false;
  if (!generation_->data().split.validation.empty()) {
    const auto result = ScoreValidation();
    if (result.status().code() == StatusCode::kCancelled) return OkStatus();
    RT_RETURN_IF_ERROR(Status(result.status()));
    progress.last_accuracy = result->accuracy();
    best = progress.last_accuracy > progress.best_accuracy;
    if (best) {
      progress.best_accuracy = result->accuracy();
      progress.best_step = progress.step;
      progress.unimproved = 0;
    } else if (progress.unimproved >= 0) {
      ++progress.unimproved;
    }
    Metrics metrics;
    metrics.kind = Metrics::Kind::kEvaluation;
    metrics.step = progress.step;
    metrics.epoch = generation_->plan.EpochAt(progress.step);
    metrics.loss = result->loss();
    metrics.accuracy = result->accuracy();
    metrics.images_per_s = static_cast<double>(result->images) / watch.Seconds();
    Record(metrics);
    if (generation_->observer() != nullptr) generation_->observer()->OnEvaluation(metrics, best);
    ExplainLoss(*result);
    WarnOfHighRate(*result);
  }
  progress.evaluated_step = progress.step;
  return SaveCheckpoint(best);
}

// Weights that were loaded brought statistics of many steps.
void RunKeeper::ExplainLoss(const EvaluationResult& result) {
  const TrainConfig& train = generation_->config().train();
  const bool may = generation_->world->leads() && !explained_ && train.weights().empty() &&
                   !generation_->arena().buffer_values().empty();
  if (!may) return;
  const std::string why =
      ExplainEarlyLoss({.steps = generation_->step(),
                        .updates_of_step = train.accumulation(),
                        .validation_loss = result.loss(),
                        .training_loss = rate_guard_.MeanLoss(),
                        .classes = generation_->state().model()->num_classes()});
  explained_ = !why.empty();
  if (explained_) LogInfo(why);
}

// Every rank finds the same; one says so.
void RunKeeper::WarnOfHighRate(const EvaluationResult& result) {
  const std::string warning = rate_guard_.AddEvaluation(
      result.accuracy(), result.images, generation_->config().optim().learning_rate());
  if (!warning.empty() && generation_->world->leads()) LogWarning(warning);
}

// A difference leaves its mark in the run's folder, whatever becomes of this process.
Status RunKeeper::Compare() {
  if (KeepsAlone()) return OkStatus();  // spares the checksums
  Status status = OkStatus();
  if (!generation_->replicas->alone()) {
    StateChecksums own = generation_->state().Checksums();
    own.optimizer = update_->Checksum(own.optimizer);
    status = agreement_.Check(own);
  }
  const bool stages = generation_->link != nullptr;
  if (stages) status = CompareStages(status);
  const bool differ = agreement_.failed() || (stages && status.code() == StatusCode::kDataLoss);
  if (!differ || directory_ == nullptr) return status;
  const std::string& finding = agreement_.failed() ? agreement_.finding() : status.message();
  const Status marked = directory_->checkpoints().MarkFailedCheck(
      fmt::format("after step {}: {}", generation_->step(), finding));
  if (!marked.ok()) {
    LogWarning("cannot write to disk that the ranks differ: " + marked.message());
  }
  return status;
}

// The replicas of each stage have compared theirs: if some differ, the run is over for all.
Status RunKeeper::CompareStages(const Status& own) {
  RT_ASSIGN_OR_RETURN(const auto found, generation_->world->FirstError(own));
  if (!found) return OkStatus();
  generation_->world->Blame(own.ok() ? TrainingWorld::Culprit::kAnother
                                     : generation_->replicas->culprit());
  return DataLoss(found->message);
}

// All ranks hold the same state: each writes what it alone has, then rank 0 writes the rest.
Status RunKeeper::SaveCheckpoint(bool best) {
  const ScopedSpan span("checkpoint", "run");
  offered_step_ = generation_->step();
  RT_RETURN_IF_ERROR(Compare());
  // The same on all ranks.
  WrittenParts written{.status = CheckFinite(), .parts = std::nullopt};
  if (!written.status.ok() && generation_->world->lost()) return written.status;
  if (written.status.ok()) {
    RT_ASSIGN_OR_RETURN(
        written, update_->WriteParts(directory_ != nullptr ? &directory_->checkpoints() : nullptr));
  }
  if (written.status.ok()) RT_RETURN_IF_ERROR(GatherParts(generation_->state().Tensors()));
  KeepCheckpoint(best, KeepsAlone() ? 1 : generation_->replicas->size(), written);
  whole_ = {};
  return OkStatus();
}

Status RunKeeper::CheckFinite() const {
  return KeepsAlone() ? generation_->state().CheckFinite()
                      : CheckStateTogether(generation_->world, generation_->state());
}

Status RunKeeper::GatherParts(std::span<const TensorView> own) {
  if (!DividesState()) return OkStatus();
  if (generation_->link != nullptr) {
    const std::string folder = directory_ != nullptr
                                   ? directory_->path()
                                   : std::filesystem::temp_directory_path().string();
    RT_ASSIGN_OR_RETURN(OwnedTensors others, GatherStages(generation_->link.get(), own, folder));
    whole_.Add(std::move(others));
    return OkStatus();
  }
  RT_ASSIGN_OR_RETURN(whole_, WholeTensors::Gather(generation_->world, generation_->state()));
  return OkStatus();
}

bool RunKeeper::DividesState() const { return generation_->run->is_divided(); }

Status RunKeeper::WriteCheckpoint(int agreed_ranks, const WrittenParts& written) {
  if (!written.status.ok()) {
    directory_->checkpoints().DeleteOrphanParts();
    return written.status;
  }
  return directory_->checkpoints().Save(
      generation_->step(), Tensors(agreed_ranks > 0), Metadata(agreed_ranks),
      generation_->config().train().keep_checkpoints(), written.parts ? &*written.parts : nullptr);
}

void RunKeeper::KeepCheckpoint(bool best, int agreed_ranks, const WrittenParts& written) {
  if (directory_ == nullptr) return;
  const ScopedPhase saving(generation_->world->progress(), Phase::kCheckpoint);
  const int64_t step = generation_->step();
  CheckpointDirectory& checkpoints = directory_->checkpoints();
  Status status = WriteCheckpoint(agreed_ranks, written);
  if (status.ok()) saved_step_ = step;
  if (status.ok() && agreed_ranks > 0) agreed_path_ = PathOfAgreed(checkpoints.Path(step));
  if (status.ok() && best) status = checkpoints.SaveBest(step);
  if (status.ok()) {
    directory_->CheckpointSaved();
  } else {
    directory_->CheckpointFailed(step, saved_step_, status);
  }
}

Status RunKeeper::SaveFinal() {
  const ScopedPhase saving(generation_->world->progress(), Phase::kCheckpoint);
  WeightAverage* const average = generation_->state().average();
  if (average != nullptr) average->Swap();
  Status status = GatherParts(ModelTensors(generation_->arena()));
  if (status.ok() && directory_ != nullptr) status = WriteFinal();
  whole_ = {};
  if (average != nullptr) average->Swap();
  return status;
}

Status RunKeeper::WriteFinal() {
  FinalNetworkOptions options;
  options.stop = [] { return StopSignal() != 0; };
  std::vector<TensorView> tensors = ModelTensors(generation_->arena());
  whole_.Complete(&tensors);
  return WriteFinalNetwork(
      directory_,
      [&](const std::string& path) {
        return WriteSafetensors(path, tensors,
                                Metadata(KeepsAlone() ? 1 : generation_->replicas->size()));
      },
      options);
}

void RunKeeper::SaveAfterFailure(const Status& cause) {
  if (!cause.ok()) failure_ = cause.message();
  if (update_ == nullptr || agreement_.failed()) return;
  const ScopedPhase saving(generation_->world->progress(), Phase::kCheckpoint);
  update_->Undo();
  const int64_t step = generation_->step();
  if (DividesState() && !KeepsAlone()) {
    if (generation_->world->leads()) {
      LogWarning(
          "the other ranks hold a part of the weights: nothing is saved since the last "
          "checkpoint");
    }
    return;
  }
  if (step > 0 && saved_step_ != step) {
    KeepCheckpoint(/*best=*/false, KeepsAlone() ? 1 : 0,
                   {.status = generation_->state().CheckFinite(), .parts = std::nullopt});
  }
}

void RunKeeper::SaveInto(RunDirectory* directory) {
  if (update_ == nullptr || agreement_.failed()) return;
  const ScopedPhase saving(generation_->world->progress(), Phase::kCheckpoint);
  const int64_t step = generation_->step();
  const auto newest = LoadNewestCheckpoint(directory->path());
  if (newest.ok() && newest->step >= step) return;
  directory_ = directory;
  SaveAfterFailure(OkStatus());
  if (saved_step_ == step) directory->RecordLate(newest_);
  directory_ = nullptr;
}

ResumePoint RunKeeper::Point(int agreed_ranks) const {
  const TrainingData& data = generation_->data();
  ResumePoint point;
  point.config = generation_->config();
  point.progress = generation_->progress();
  point.data = data.Identity();
  point.division = generation_->division.all;
  point.numerics = generation_->run->numerics();
  point.algorithms = UsedAlgorithms();
  point.allreduces = generation_->replicas->SelectedAllreduces();
  point.agreed_ranks = agreed_ranks;
  point.written_after = failure_;
  update_->Describe(&point);
  return point;
}

std::map<std::string, std::string> RunKeeper::Metadata(int agreed_ranks) const {
  return MetadataOf(Point(agreed_ranks), generation_->data().dataset->class_names());
}

}  // namespace ringtail
