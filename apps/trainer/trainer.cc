#include "apps/trainer/trainer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "apps/trainer/checkpoint/config_difference.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/division/rank_speed.h"
#include "apps/trainer/set_up_in_turn.h"
#include "core/check.h"
#include "core/logging.h"
#include "core/stop_signal.h"

namespace ringtail {
namespace {

// Where nobody shares it.
TrainingWorld* Alone() {
  static TrainingWorld alone;
  return &alone;
}

StatusOr<int64_t> BatchesPerEpoch(int64_t global_batch, const TrainingData& data) {
  const auto images = static_cast<int64_t>(data.split.train.size());
  if (images >= global_batch) return images / global_batch;
  return InvalidArgument(
      fmt::format("{} images to train on are fewer than one batch of {} over all ranks; take a "
                  "lower train.batch or --local-batch, or fewer ranks",
                  images, global_batch));
}

Status CheckClasses(const Model& model, const Dataset& dataset) {
  const auto classes = static_cast<int64_t>(dataset.class_names().size());
  if (classes <= model.num_classes()) return OkStatus();
  return InvalidArgument(fmt::format(
      "the images have {} classes ({}), the network tells {} apart; change the last layer", classes,
      fmt::join(dataset.class_names(), ", "), model.num_classes()));
}

}  // namespace

StatusOr<std::unique_ptr<Trainer>> Trainer::Create(const LoadedConfig& loaded,
                                                   const TrainingData* data,
                                                   RunDirectory* directory,
                                                   TrainingObserver* observer, TrainingWorld* world,
                                                   const BatchRequest& batch) {
  const RunConfig& config = loaded.config;
  if (world == nullptr) world = Alone();
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(loaded));
  RT_RETURN_IF_ERROR(CheckClasses(*model, *data->dataset));
  RT_RETURN_IF_ERROR(world->Agree("the list of images", fmt::format("{:016x}", data->fingerprint)));
  RT_ASSIGN_OR_RETURN(
      BatchDivision division,
      DivideBatch(
          batch, config.train(),
          [&](int64_t images) { return MeasureRankSpeed(loaded, images, world); }, world));
  const BatchShare share = division.own;
  RT_ASSIGN_OR_RETURN(const int64_t batches_per_epoch, BatchesPerEpoch(share.global_batch, *data));
  RT_ASSIGN_OR_RETURN(const int64_t most_batches,
                      MostBatches(config.optim(), share.global_batch,
                                  static_cast<int64_t>(data->split.train.size())));
  ScaledOptim optim = ScaleToBatch(config.optim(), {.rank = config.train().batch(),
                                                    .global = share.global_batch,
                                                    .steps_per_epoch = batches_per_epoch,
                                                    .epochs = config.train().epochs()});
  TrainingPlan plan(config, batches_per_epoch,
                    {.optim = optim.config,
                     .images_per_batch = share.global_batch,
                     .most_batches = most_batches});
  RT_ASSIGN_OR_RETURN(
      auto state, TrainingState::Create(std::move(model), config.optim(), config.train().seed()));
  return std::unique_ptr<Trainer>(new Trainer(config, data, directory, observer, world,
                                              std::move(state), std::move(division),
                                              std::move(optim), std::move(plan)));
}

Trainer::Trainer(RunConfig config, const TrainingData* data, RunDirectory* directory,
                 TrainingObserver* observer, TrainingWorld* world, TrainingState state,
                 BatchDivision division, ScaledOptim optim, TrainingPlan plan)
    : config_(std::move(config)),
      data_(data),
      directory_(directory),
      observer_(observer),
      world_(world),
      state_(std::move(state)),
      division_(std::move(division)),
      optim_(std::move(optim)),
      plan_(std::move(plan)),
      agreement_(world),
      exchange_(world, &state_.model()->arena(), division_.own, config_.dist()),
      sum_(world) {}

Status Trainer::Resume(const Checkpoint& checkpoint) {
  RunConfig saved;
  const auto& metadata = checkpoint.file.metadata();
  const auto text = metadata.find(kConfigKey), fingerprint = metadata.find(kFingerprintKey);
  if (text == metadata.end() || fingerprint == metadata.end()) {
    return FailedPrecondition(
        fmt::format("{}: this is no checkpoint of a run; resume from the run's folder, or from a "
                    "step-*.safetensors in its checkpoints/",
                    checkpoint.path));
  }
  RT_RETURN_IF_ERROR(ParseTextConfig(text->second, checkpoint.path, &saved, nullptr));
  RT_RETURN_IF_ERROR(CheckResumable(saved, config_).Annotate(checkpoint.path));
  if (fingerprint->second != fmt::format("{:016x}", data_->fingerprint)) {
    auto counts = metadata.find(kImagesKey);
    if (counts == metadata.end()) counts = metadata.find(kOldImagesKey);
    return FailedPrecondition(fmt::format(
        "{}: the images or their split are not those that the run began with ({}; "
        "now {}); give it the same --data and data.split, or begin a run in another "
        "--output",
        checkpoint.path, counts != metadata.end() ? counts->second : "no count of them is kept",
        data_->Counts()));
  }
  // Runs that began before there was such a key have no opinion.
  const auto contents = metadata.find(kContentsKey);
  if (contents != metadata.end() && contents->second != fmt::format("{:016x}", data_->contents)) {
    return FailedPrecondition(fmt::format(
        "{}: the images have the names and labels that the run began with, but what is in their "
        "files is not the same; give it the files of then (--data), or begin a run in another "
        "--output",
        checkpoint.path));
  }
  RT_ASSIGN_OR_RETURN(const RankBatches division, ReadDivision(checkpoint));
  RT_RETURN_IF_ERROR(CheckGlobalBatch(division.global_batch, division_.own.global_batch)
                         .Annotate(checkpoint.path));
  RT_RETURN_IF_ERROR(state_.Restore(checkpoint.file).Annotate(checkpoint.path));
  RT_ASSIGN_OR_RETURN(saved_compression_, GradientCompression::Read(checkpoint));
  saved_step_ = step();
  if (checkpoint.agreed_ranks() > 0) agreed_path_ = PathOfAgreed(checkpoint.path);
  return OkStatus();
}

std::string Trainer::PathOfAgreed(const std::string& path) const {
  const std::filesystem::path file = std::filesystem::absolute(path);
  std::error_code ignored;
  const bool own =
      directory_ != nullptr &&
      std::filesystem::equivalent(file.parent_path(), directory_->checkpoints().folder(), ignored);
  return own ? file.filename() : file;
}

StatusOr<TrainingOutcome> Trainer::Run() {
  auto outcome = RunSteps();
  if (outcome.ok()) return outcome;
  failure_ = outcome.status().message();
  world_->Abort(outcome.status());
  if (!world_->cut_off()) SaveAfterFailure();
  return outcome;
}

// Everything that is the same for all ranks is rank 0's.
Status Trainer::Begin() {
  if (directory_ != nullptr) {
    RT_RETURN_IF_ERROR(directory_->Begin(config_, data_->bad, saved_step_));
  }
  RT_RETURN_IF_ERROR(world_->ShareState(&state_));
  if (step() > 0) saved_step_ = offered_step_ = step();  // on every rank: rank 0's checkpoint
  RT_RETURN_IF_ERROR(BeginCompression());
  if (directory_ != nullptr) directory_->CheckRoom(CheckpointSizes());
  RT_RETURN_IF_ERROR(PreparePhases());
  // A run that was killed between writing its best checkpoint and calling it that.
  return state_.progress.best_step == step() ? SaveCheckpoint(/*best=*/true) : OkStatus();
}

// What a checkpoint takes, file by file: rank 0's, and what each rank has of its own.
std::vector<int64_t> Trainer::CheckpointSizes() const {
  std::vector<int64_t> files(1);
  for (const TensorView& tensor : state_.Tensors()) files[0] += std::ssize(tensor.data);
  if (compression_ == nullptr) return files;
  for (const TensorView& tensor : compression_->Tensors()) files[0] += std::ssize(tensor.data);
  const std::vector<int64_t>& parts = compression_->part_bytes();
  files.insert(files.end(), parts.begin(), parts.end());
  return files;
}

Status Trainer::BeginCompression() {
  RT_ASSIGN_OR_RETURN(
      compression_, GradientCompression::Create(
                        world_, &state_.model()->arena(), config_.dist().compression(),
                        {.global_batch = division_.own.global_batch,
                         .seed = config_.train().seed(),
                         .buckets = exchange_.buckets(),
                         .directory = directory_ != nullptr ? &directory_->checkpoints() : nullptr},
                        std::exchange(saved_compression_, {})));
  exchange_.Compress(compression_.get());
  if (compression_ != nullptr && world_->leads()) {
    LogInfo("gradients: " + compression_->description());
  }
  return OkStatus();
}

StatusOr<TrainingOutcome> Trainer::RunSteps() {
  RT_RETURN_IF_ERROR(Begin());
  while (true) {
    auto outcome = RunToEnd();
    if (outcome.ok() || !agreement_.failed()) return outcome;
    RT_RETURN_IF_ERROR(GoBack(outcome.status()));
  }
}

StatusOr<TrainingOutcome> Trainer::RunToEnd() {
  while (true) {
    RT_RETURN_IF_ERROR(EvaluateIfDue());
    const bool stop = Signal() != 0;
    if ((stop || plan_.CheckpointIsDue(step())) && offered_step_ != step()) {
      RT_RETURN_IF_ERROR(SaveCheckpoint(/*best=*/false));
    }
    if (stop) return StoppedBy(Signal(), state_.progress, plan_.total_steps(), saved_step_);
    if (IsFinished()) break;
    const Status entered = EnterPhase();
    // Told to stop while it measured: alone, as several ranks measure before the first step.
    if (entered.code() == StatusCode::kCancelled && Signal() != 0) continue;
    RT_RETURN_IF_ERROR(Status(entered));
    TellOfGrowth();
    const std::string where = fmt::format("in step {}", step() + 1);
    RT_RETURN_IF_ERROR(TrainStep().Annotate(where));
    if (!not_finite_.empty()) return NotFinite(not_finite_, state_.progress, saved_step_);
  }
  // The last update is seen by no later loss.
  if (const Status finite = state_.CheckFinite(); !finite.ok()) {
    return NotFinite(finite.message(), state_.progress, saved_step_);
  }
  RT_RETURN_IF_ERROR(CheckState());
  RT_RETURN_IF_ERROR(SaveFinal());
  TrainingOutcome outcome = Finished(state_.progress, plan_.total_steps(),
                                     directory_ != nullptr ? directory_->FinalPath() : "");
  outcome.advice = noise_scale_.Describe();
  return outcome;
}

// Sets a net up for each image size of the run, so that what is too large fails now and not hours
// later, and every checkpoint knows the convolution algorithms of all of them.
Status Trainer::PreparePhases() {
  const std::vector<int64_t> sizes = TrainingImageSizes(config_);
  const int64_t validation = EvaluationShare().size();
  const auto set_up = [&]() -> Status {
    for (const int64_t size : sizes) {
      RT_RETURN_IF_ERROR(CreateGradients(size).status());
      RT_RETURN_IF_ERROR(
          CreateEvaluationNet(state_.model(), validation, EvaluationOptionsOf(config_, size))
              .status());
    }
    return OkStatus();
  };
  if (world_->alone()) return sizes.size() < 2 ? OkStatus() : set_up();
  return SetUpInTurn(world_, division_.own.batch, set_up);
}

StatusOr<std::unique_ptr<GradientPass>> Trainer::CreateGradients(int64_t image_size) {
  const TrainConfig& train = config_.train();
  const bool together = config_.dist().sync_batch_norm() && !world_->alone();
  return GradientPass::Create(state_.model(), {.batch = division_.own.batch,
                                               .parts = train.accumulation(),
                                               .most_batches = plan_.stages().back().batches,
                                               .image_size = image_size,
                                               .seed = train.seed(),
                                               .first_sample = division_.own.first_row,
                                               .global_batch = division_.own.global_batch,
                                               .ranks = together ? &sum_ : nullptr});
}

// Makes net and loader for the image size of this step, if they are not there.
Status Trainer::EnterPhase() {
  const int64_t image_size = plan_.PhaseAt(step()).image_size;
  if (gradients_ && gradients_->options().image_size == image_size) return OkStatus();
  const ScopedPhase set_up(world_->progress(), Phase::kSetUp);
  gradients_.reset();  // before the new ones take their memory
  loader_.reset();
  RT_ASSIGN_OR_RETURN(gradients_, CreateGradients(image_size));
  LoaderOptions options;
  options.mode = LoaderMode::kTrain;
  options.batch = division_.own.batch;
  options.image_size = image_size;
  options.seed = config_.train().seed();
  options.first_row = division_.own.first_row;
  options.global_batch = division_.own.global_batch;
  RT_ASSIGN_OR_RETURN(loader_, DataLoader::Create(data_->dataset.get(), data_->split.train,
                                                  config_.data(), options));
  RT_CHECK(loader_->steps_per_epoch() == plan_.batches_per_epoch(), "loader and plan disagree");
  SeekTo(step());
  return OkStatus();
}

// The loader's next batch is the first of this step.
void Trainer::SeekTo(int64_t step) {
  const int64_t batch = plan_.BatchesBefore(step), per_epoch = plan_.batches_per_epoch();
  loader_->Seek(batch / per_epoch, batch % per_epoch);
}

void Trainer::TellOfGrowth() {
  const size_t stage = plan_.StageBeginningAt(step());
  if (stage == 0 || observer_ == nullptr) return;
  observer_->OnBatchGrowth(DescribeStage(optim_.config, plan_.growth_run(), plan_.stages(), stage));
}

// Several ranks stop together, after the step in which the first was told to.
int Trainer::Signal() const { return world_->alone() ? StopSignal() : agreed_signal_; }

bool Trainer::IsFinished() const {
  const double until = config_.train().until_accuracy();
  return step() >= plan_.total_steps() || (until > 0 && state_.progress.best_accuracy >= until);
}

}  // namespace ringtail
