#include "apps/trainer/update/step_gradients.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "apps/trainer/set_up_in_turn.h"
#include "apps/trainer/update/batch_view.h"
#include "apps/trainer/world_evaluation.h"
#include "core/check.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
namespace {

bool Tells(const std::string& finding) { return !finding.empty(); }

// The rank where it began, of findings by rank in pipelines of so many stages: a blob or weight goes
// from stage to stage, a gradient back.
std::vector<std::string>::const_iterator FirstStageOf(const std::vector<std::string>& findings,
                                                      int stages) {
  const auto is_blob = [](const std::string& finding) {
    return Tells(finding) && !finding.starts_with("the gradient of");
  };
  const auto blob = std::ranges::find_if(findings, is_blob);
  if (blob != findings.end()) return blob;
  const auto any = std::ranges::find_if(findings, Tells);
  if (any == findings.end()) return any;
  auto last = any;  // of that pipeline
  const auto end = findings.begin() + ((any - findings.begin()) / stages + 1) * stages;
  for (auto i = any; i != end; ++i) last = Tells(*i) ? i : last;
  return last;
}

}  // namespace

Status StepGradients::PreparePhases() {
  TrainingWorld* const world = generation_->world;
  const bool one_net =
      TrainingImageSizes(generation_->config()).size() < 2 && !generation_->WillThaw();
  if (world->alone()) return one_net ? OkStatus() : SetUpPhases();
  const StageChoice& stage = generation_->run->stage;
  const std::string kind = fmt::format("batch {}, stage {} of {}", generation_->division.own.batch,
                                       stage.stage, stage.shape.stages);
  return SetUpInTurn(world, kind, [this] { return SetUpPhases(); });
}

Status StepGradients::SetUpPhases() {
  const RunConfig& config = generation_->config();
  const int64_t validation = std::ssize(EvaluationShare(*generation_));
  std::unique_ptr<Model> thawed;
  if (generation_->WillThaw()) {
    RT_ASSIGN_OR_RETURN(thawed, CreateModel(*generation_->run->options.loaded, /*allocate=*/true,
                                            /*freeze=*/false, generation_->run->shards.request,
                                            generation_->run->stage.request));
  }
  for (const int64_t size : TrainingImageSizes(config)) {
    Model* const model = generation_->state().model();
    RT_RETURN_IF_ERROR(TryPass(model, size));
    if (thawed) RT_RETURN_IF_ERROR(TryPass(thawed.get(), size));
    RT_RETURN_IF_ERROR(
        CreateEvaluationNet(model, validation, EvaluationOptionsOf(config, size)).status());
  }
  return OkStatus();
}

// Where tickets say which rows are whose, only the number of them is planned.
BatchShare StepGradients::PlannedShare() const {
  const BatchShare& share = generation_->division.own;
  if (!UsesServers(generation_->config().dist().asynchronous())) return share;
  return {.batch = share.batch, .global_batch = share.batch};
}

GradientPass::Options StepGradients::PassOptions(int64_t image_size) {
  const RunConfig& config = generation_->config();
  const BatchShare share = PlannedShare();
  const bool together = config.dist().sync_batch_norm() && !generation_->replicas->alone();
  const ShardChoice& shards = generation_->run->shards;
  return {.batch = share.batch,
          .parts = config.train().accumulation(),
          .most_batches = generation_->plan.stages().back().batches,
          .image_size = image_size,
          .seed = config.train().seed(),
          .first_sample = share.first_row,
          .global_batch = share.global_batch,
          .ranks = together ? &sum_ : nullptr,
          .shards = shards.divides() ? &shards_ : nullptr,
          .shard = shards.request.shard};
}

Status StepGradients::TryPass(Model* model, int64_t image_size) {
  const StageChoice& stage = generation_->run->stage;
  if (!stage.divides()) return GradientPass::Create(model, PassOptions(image_size)).status();
  return PipelinePass::Create(model, PassOptions(image_size), stage, nullptr).status();
}

Status StepGradients::EnterPhase() {
  return UsesServers(generation_->config().dist().asynchronous())
             ? OkStatus()  // a ticket says which
             : EnterPhaseOf(generation_->step());
}

Status StepGradients::EnterPhaseOf(int64_t step) {
  const int64_t image_size = generation_->plan.PhaseAt(step).image_size;
  if (image_size_ == image_size) return OkStatus();
  const ScopedPhase set_up(generation_->world->progress(), Phase::kSetUp);
  image_size_ = 0;
  pass_.reset();  // before the new ones take their memory
  stage_pass_.reset();
  loader_.reset();
  tickets_.reset();
  Model* const model = generation_->state().model();
  const GradientPass::Options options = PassOptions(image_size);
  const StageChoice& stage = generation_->run->stage;
  if (stage.divides()) {
    RT_ASSIGN_OR_RETURN(stage_pass_,
                        PipelinePass::Create(model, options, stage, generation_->link.get()));
  } else {
    RT_ASSIGN_OR_RETURN(pass_, GradientPass::Create(model, options));
  }
  image_size_ = image_size;
  if (!stage.is_first()) return OkStatus();
  RT_ASSIGN_OR_RETURN(loader_, CreateLoader(image_size));
  if (UsesServers(generation_->config().dist().asynchronous())) {
    tickets_ = std::make_unique<TicketGradients>(generation_, std::move(pass_), std::move(loader_));
    return OkStatus();
  }
  RT_CHECK(loader_->steps_per_epoch() == generation_->plan.batches_per_epoch(),
           "loader and plan disagree about the batches of an epoch");
  SeekTo(step);
  return OkStatus();
}

StatusOr<std::unique_ptr<DataLoader>> StepGradients::CreateLoader(int64_t image_size) const {
  const RunConfig& config = generation_->config();
  const BatchShare share = PlannedShare();
  LoaderOptions options;
  options.mode = LoaderMode::kTrain;
  options.batch = share.batch;
  options.image_size = image_size;
  options.seed = config.train().seed();
  options.first_row = share.first_row;
  options.global_batch = share.global_batch;
  const TrainingData& data = generation_->data();
  return DataLoader::Create(data.dataset.get(), data.split.train, config.data(), options);
}

// The loader's next batch is the first of this step.
void StepGradients::SeekTo(int64_t step) {
  if (!loader_) return;  // the first stage's
  const TrainingPlan& plan = generation_->plan;
  const int64_t batch = plan.BatchesBefore(step), per_epoch = plan.batches_per_epoch();
  loader_->Seek(batch / per_epoch, batch % per_epoch);
}

StatusOr<OwnStep> StepGradients::Compute(const StepWork& work, GradientListener* listener) {
  if (work.kind != StepWork::Kind::kTicket) return ComputePlanned(work, listener);
  const int64_t images_per_step = generation_->plan.growth_run().images_per_batch;
  RT_RETURN_IF_ERROR(EnterPhaseOf(work.ticket.first / images_per_step));
  return tickets_->Compute(work, listener);
}

StatusOr<OwnStep> StepGradients::ComputePlanned(const StepWork& work, GradientListener* listener) {
  Progress* const progress = generation_->world->progress();
  const int64_t step = generation_->step(), batches = generation_->plan.BatchesOf(step);
  OwnStep own;
  for (int64_t index = 0; index < batches; ++index) {
    progress->Enter(Phase::kDataWait);
    RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, NextBatch());
    own.wait_seconds += loaded.wait_seconds;
    progress->Enter(Phase::kForward);
    RT_ASSIGN_OR_RETURN(own.loss, RunPass(loaded,
                                          {.step = step,
                                           .index = index,
                                           .count = batches,
                                           .statistics_steps = work.statistics_steps},
                                          listener));
  }
  own.times = stage_pass_ ? stage_pass_->times() : pass_->times();
  if (stage_pass_) own.stages = stage_pass_->TakeTotals();
  own.find_not_finite = [this] { return WhereNotFiniteHere(); };
  return own;
}

StatusOr<LoadedBatch> StepGradients::NextBatch() {
  if (!loader_) return LoadedBatch();
  return loader_->Next();
}

StatusOr<LossResult> StepGradients::RunPass(const LoadedBatch& batch, const StepBatch& place,
                                            GradientListener* listener) {
  if (stage_pass_) return stage_pass_->Run(ViewOf(batch), place, listener);
  return pass_->Run(ViewOf(batch), place, listener);
}

StatusOr<std::string> StepGradients::DescribeNonFinite(const LoadedBatch& batch,
                                                       const StepBatch& place) {
  if (stage_pass_) return stage_pass_->DescribeNonFinite(ViewOf(batch), place);
  return pass_->DescribeNonFinite(ViewOf(batch), place);
}

// In this rank's rows; empty: nowhere. The stages of a pipeline look at all of them together.
StatusOr<std::string> StepGradients::WhereNotFiniteHere() {
  const int64_t step = generation_->step(), batches = generation_->plan.BatchesOf(step);
  std::string found;
  SeekTo(step);
  for (int64_t index = 0; index < batches && (stage_pass_ || found.empty()); ++index) {
    RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, NextBatch());
    RT_ASSIGN_OR_RETURN(
        const std::string here,
        DescribeNonFinite(loaded, {.step = step, .index = index, .count = batches}));
    if (found.empty()) found = here;
  }
  SeekTo(step + 1);
  return found;
}

// The lowest rank that finds the cause among its own rows names it.
StatusOr<std::string> StepGradients::WhereNotFinite() {
  TrainingWorld* const world = generation_->world;
  RT_ASSIGN_OR_RETURN(const std::string own, WhereNotFiniteHere());
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> all, world->GatherText(own));
  const auto found = stage_pass_ ? FirstStageOf(all, generation_->run->stage.shape.stages)
                                 : std::ranges::find_if(all, Tells);
  if (found == all.end()) {
    return std::string("the loss is not finite, though the output of every layer is");
  }
  if (world->alone()) return *found;
  return fmt::format("{}: {}", world->Describe(static_cast<int>(found - all.begin())), *found);
}

}  // namespace ringtail
