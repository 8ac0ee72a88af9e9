#include "apps/trainer/trainer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "apps/stop_signal.h"
#include "apps/stopwatch.h"
#include "apps/trainer/config_difference.h"
#include "apps/trainer/evaluation.h"
#include "apps/trainer/model_file.h"
#include "apps/trainer/numerics.h"
#include "core/logging.h"
#include "optim/schedule.h"

namespace ringtail {
namespace {

constexpr char kFingerprintKey[] = "data_fingerprint";

StatusOr<int64_t> StepsPerEpoch(const TrainConfig& train, const TrainingData& data) {
  const auto pictures = static_cast<int64_t>(data.split.train.size());
  if (pictures >= train.batch()) return pictures / train.batch();
  return InvalidArgument(
      fmt::format("{} pictures to train on are fewer than one batch of {}; set train.batch lower",
                  pictures, train.batch()));
}

Status CheckClasses(const Model& model, const Dataset& dataset) {
  const auto classes = static_cast<int64_t>(dataset.class_names().size());
  if (classes <= model.num_classes()) return OkStatus();
  return InvalidArgument(fmt::format(
      "the pictures have {} classes ({}), the network tells {} apart; change the last layer",
      classes, fmt::join(dataset.class_names(), ", "), model.num_classes()));
}

Metrics StepMetrics(const LossResult& loss, double learning_rate, double wait_seconds,
                    const PassTimes& times, double step_seconds) {
  constexpr double kMsPerSecond = 1e3;
  const auto count = static_cast<double>(loss.count);
  Metrics metrics;
  metrics.kind = Metrics::Kind::kStep;
  metrics.loss = loss.loss_sum / count;
  metrics.accuracy = static_cast<double>(loss.correct) / count;
  metrics.learning_rate = learning_rate;
  metrics.images_per_s = count / step_seconds;
  metrics.step_ms = step_seconds * kMsPerSecond;
  metrics.data_wait_ms = wait_seconds * kMsPerSecond;
  metrics.forward_ms = times.forward_seconds * kMsPerSecond;
  metrics.backward_ms = times.backward_seconds * kMsPerSecond;
  metrics.exposed_comm_ms = 0;
  return metrics;
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const LoadedConfig& loaded,
                                                   const TrainingData* data,
                                                   RunDirectory* directory,
                                                   TrainingObserver* observer) {
  const RunConfig& config = loaded.config;
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(loaded));
  RT_RETURN_IF_ERROR(CheckClasses(*model, *data->dataset));
  RT_ASSIGN_OR_RETURN(const int64_t steps_per_epoch, StepsPerEpoch(config.train(), *data));
  RT_ASSIGN_OR_RETURN(
      auto state, TrainingState::Create(std::move(model), config.optim(), config.train().seed()));
  return std::unique_ptr<Trainer>(new Trainer(config, data, directory, observer, std::move(state),
                                              TrainingPlan(config, steps_per_epoch)));
}

Trainer::Trainer(RunConfig config, const TrainingData* data, RunDirectory* directory,
                 TrainingObserver* observer, TrainingState state, TrainingPlan plan)
    : config_(std::move(config)),
      data_(data),
      directory_(directory),
      observer_(observer),
      state_(std::move(state)),
      plan_(std::move(plan)) {}

Status Trainer::Resume(const Checkpoint& checkpoint) {
  RunConfig saved;
  const auto& metadata = checkpoint.file.metadata();
  const auto text = metadata.find(kConfigKey), fingerprint = metadata.find(kFingerprintKey);
  if (text == metadata.end() || fingerprint == metadata.end()) {
    return FailedPrecondition(
        fmt::format("{}: this is a trained network, not a run's checkpoint", checkpoint.path));
  }
  RT_RETURN_IF_ERROR(ParseTextConfig(text->second, checkpoint.path, &saved, nullptr));
  RT_RETURN_IF_ERROR(CheckResumable(saved, config_).Annotate(checkpoint.path));
  if (fingerprint->second != fmt::format("{:016x}", data_->fingerprint)) {
    return FailedPrecondition(fmt::format(
        "{}: the pictures or their split are not those that the run began with", checkpoint.path));
  }
  RT_RETURN_IF_ERROR(state_.Restore(checkpoint.file).Annotate(checkpoint.path));
  saved_step_ = step();
  return OkStatus();
}

StatusOr<TrainingOutcome> Trainer::Run() {
  RT_RETURN_IF_ERROR(directory_->Begin(config_, data_->bad, saved_step_));
  RT_RETURN_IF_ERROR(PreparePhases());
  // A run that was killed between writing its best checkpoint and calling it that.
  if (state_.progress.best_step == step()) SaveCheckpoint(/*best=*/true);
  while (true) {
    RT_RETURN_IF_ERROR(EvaluateIfDue());
    if (StopSignal() != 0) return Stopped();
    if (plan_.CheckpointIsDue(step()) && saved_step_ != step()) SaveCheckpoint(/*best=*/false);
    if (IsFinished()) break;
    RT_RETURN_IF_ERROR(EnterPhase());
    RT_RETURN_IF_ERROR(TrainStep());
    if (!not_finite_.empty()) return NotFinite();
  }
  // The last update is seen by no later loss.
  if (const Status finite = state_.CheckFinite(); !finite.ok()) {
    not_finite_ = finite.message();
    return NotFinite();
  }
  RT_RETURN_IF_ERROR(SaveFinal());
  return Finished();
}

// Sets a net up for each picture size of the run, so that what is too large fails now and not hours
// later, and every checkpoint knows the convolution algorithms of all of them.
Status Trainer::PreparePhases() {
  const std::vector<int64_t> sizes = TrainingImageSizes(config_);
  if (sizes.size() < 2) return OkStatus();
  for (const int64_t size : sizes) RT_RETURN_IF_ERROR(CreateGradients(size).status());
  return OkStatus();
}

StatusOr<std::unique_ptr<GradientPass>> Trainer::CreateGradients(int64_t image_size) {
  const TrainConfig& train = config_.train();
  return GradientPass::Create(state_.model(), {.batch = train.batch(),
                                               .parts = train.accumulation(),
                                               .image_size = image_size,
                                               .seed = train.seed()});
}

// Makes net and loader for the picture size of this step, if they are not there.
Status Trainer::EnterPhase() {
  const int64_t image_size = plan_.PhaseAt(step()).image_size;
  if (gradients_ && gradients_->options().image_size == image_size) return OkStatus();
  gradients_.reset();  // before the new ones take their memory
  loader_.reset();
  const TrainConfig& train = config_.train();
  RT_ASSIGN_OR_RETURN(gradients_, CreateGradients(image_size));
  LoaderOptions options;
  options.mode = LoaderMode::kTrain;
  options.batch = train.batch();
  options.image_size = image_size;
  options.seed = train.seed();
  RT_ASSIGN_OR_RETURN(loader_, DataLoader::Create(data_->dataset.get(), data_->split.train,
                                                  config_.data(), options));
  RT_CHECK(loader_->steps_per_epoch() == plan_.steps_per_epoch(), "loader and plan disagree");
  loader_->Seek(step() / plan_.steps_per_epoch(), step() % plan_.steps_per_epoch());
  return OkStatus();
}

Status Trainer::TrainStep() {
  const Stopwatch watch;
  ParameterArena& arena = state_.model()->arena();
  const OptimConfig& optim = config_.optim();

  RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, loader_->Next());
  const BatchView batch = {loaded.images, loaded.labels};
  buffers_before_.assign(arena.buffer_values().begin(), arena.buffer_values().end());
  const LossResult loss = gradients_->Run(batch, step());
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
  const double norm = GradientNorm(arena, mean);
  if (!std::isfinite(loss.loss_sum) || !std::isfinite(norm)) {
    HandleNonFinite(batch);
    return OkStatus();
  }
  const double rate = LearningRate(optim, step(), plan_.total_steps(),
                                   static_cast<double>(plan_.steps_per_epoch()));
  state_.optimizer()->Step(step(), rate, mean * ClipFactor(norm, optim.clip_norm()));
  if (state_.average() != nullptr) state_.average()->Update(step());
  state_.progress.skipped_in_a_row = 0;
  ++state_.progress.step;

  Metrics metrics =
      StepMetrics(loss, rate, loaded.wait_seconds, gradients_->times(), watch.Seconds());
  metrics.step = step();
  metrics.epoch = plan_.EpochAt(step());
  directory_->Record(metrics);
  if (observer_ != nullptr) observer_->OnStep(metrics, plan_);
  return OkStatus();
}

void Trainer::HandleNonFinite(const BatchView& batch) {
  TrainingProgress& progress = state_.progress;
  // Batch norm has already mixed this batch into its running statistics: not the cause, an effect.
  std::copy(buffers_before_.begin(), buffers_before_.end(),
            state_.model()->arena().buffer_values().begin());
  const std::string where = gradients_->DescribeNonFinite(batch, step());
  if (config_.train().on_nan() == TrainConfig::STOP) {
    not_finite_ = where;
    return;
  }
  LogWarning(fmt::format("step {} is left out: {}", step(), where));
  ++progress.step;
  ++progress.skipped_steps;
  Metrics metrics;  // a line without numbers
  metrics.step = step();
  metrics.epoch = plan_.EpochAt(step());
  directory_->Record(metrics);
  if (++progress.skipped_in_a_row > kMaxSkippedInARow) {
    not_finite_ = fmt::format("{} (in {} steps running)", where, progress.skipped_in_a_row);
  }
}

// A checkpoint between step and evaluation leaves the evaluation due, so a resumed run makes up
// for it.
Status Trainer::EvaluateIfDue() {
  if (!plan_.EvaluationIsDue(step()) || state_.progress.evaluated_step == step()) return OkStatus();
  const Status status = Evaluate();
  return status.code() == StatusCode::kCancelled ? OkStatus() : status;
}

Status Trainer::Evaluate() {
  TrainingProgress& progress = state_.progress;
  const std::vector<int64_t>& pictures = data_->split.validation;
  const Stopwatch watch;
  bool best = false;
  if (!pictures.empty()) {
    if (state_.average() != nullptr) state_.average()->Swap();
    const auto logits =
        ComputeLogits(state_.model(), *data_->dataset, pictures, config_.data(),
                      EvaluationOptionsOf(config_, plan_.PhaseAt(step() - 1).image_size));
    if (state_.average() != nullptr) state_.average()->Swap();
    RT_RETURN_IF_ERROR(Status(logits.status()));
    const EvaluationResult result = Score(*logits, *data_->dataset, pictures);
    best = result.accuracy > progress.best_accuracy;
    if (best) {
      progress.best_accuracy = result.accuracy;
      progress.best_step = step();
    }
    Metrics metrics;
    metrics.kind = Metrics::Kind::kEvaluation;
    metrics.step = step();
    metrics.epoch = plan_.EpochAt(step());
    metrics.loss = result.loss;
    metrics.accuracy = result.accuracy;
    metrics.images_per_s = static_cast<double>(result.pictures) / watch.Seconds();
    directory_->Record(metrics);
    if (observer_ != nullptr) observer_->OnEvaluation(metrics, best);
  }
  progress.evaluated_step = step();
  SaveCheckpoint(best);
  return OkStatus();
}

void Trainer::SaveCheckpoint(bool best) {
  CheckpointDirectory& checkpoints = directory_->checkpoints();
  Status status = state_.CheckFinite();
  if (status.ok()) {
    status =
        checkpoints.Save(step(), state_.Tensors(), Metadata(), config_.train().keep_checkpoints());
  }
  if (status.ok()) saved_step_ = step();
  if (status.ok() && best) status = checkpoints.SaveBest(step());
  if (!status.ok()) {
    LogWarning(
        fmt::format("no checkpoint of step {}: {}; earlier ones stay", step(), status.message()));
  }
}

Status Trainer::SaveFinal() {
  if (state_.average() != nullptr) state_.average()->Swap();
  Status status = WriteModelFile(directory_->FinalPath(), state_.model()->arena(), Metadata());
  if (state_.average() != nullptr) state_.average()->Swap();
  return status;
}

std::map<std::string, std::string> Trainer::Metadata() const {
  std::map<std::string, std::string> metadata =
      ModelMetadata(config_, data_->dataset->class_names());
  metadata.merge(state_.Metadata());
  AddNumerics(CurrentNumerics(), &metadata);
  metadata[kFingerprintKey] = fmt::format("{:016x}", data_->fingerprint);
  return metadata;
}

bool Trainer::IsFinished() const {
  const double until = config_.train().until_accuracy();
  return step() >= plan_.total_steps() || (until > 0 && state_.progress.best_accuracy >= until);
}

TrainingOutcome Trainer::Stopped() {
  if (saved_step_ != step()) SaveCheckpoint(/*best=*/false);
  const std::string at =
      fmt::format("stopped by a signal after step {} of {}", step(), plan_.total_steps());
  const std::string next = saved_step_ == step() ? "go on with --resume"
                           : saved_step_ >= 0
                               ? fmt::format("--resume goes on from step {}", saved_step_)
                               : "no checkpoint was written: --resume begins anew";
  return {TrainingOutcome::Kind::kStopped, fmt::format("{}; {}", at, next)};
}

TrainingOutcome Trainer::NotFinite() const {
  const std::string intact = saved_step_ < 0
                                 ? "no checkpoint was written yet"
                                 : fmt::format("the checkpoint of step {} is intact", saved_step_);
  return {TrainingOutcome::Kind::kNotFinite,
          fmt::format("at step {} {}; {}; try a lower optim.learning_rate, a longer optim.warmup, "
                      "or optim.clip_norm=1",
                      step(), not_finite_, intact)};
}

TrainingOutcome Trainer::Finished() const {
  const TrainingProgress& progress = state_.progress;
  const bool early = step() < plan_.total_steps();
  std::string message = fmt::format("trained for {} of {} steps", step(), plan_.total_steps());
  if (progress.best_step >= 0) {
    message += fmt::format("; best validation accuracy {:.2f} % after step {}",
                           100 * progress.best_accuracy, progress.best_step);
  }
  if (progress.skipped_steps > 0) {
    message += fmt::format("; {} steps were left out (not finite)", progress.skipped_steps);
  }
  return {early ? TrainingOutcome::Kind::kReachedAccuracy : TrainingOutcome::Kind::kFinished,
          message + fmt::format("; network in {}", directory_->FinalPath())};
}

}  // namespace ringtail
