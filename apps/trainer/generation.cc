#include "apps/trainer/generation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "apps/trainer/asynchronous/worker_division.h"
#include "apps/trainer/division/rank_speed.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

StatusOr<int64_t> BatchesPerEpoch(int64_t global_batch, const TrainingData& data) {
  const auto images = static_cast<int64_t>(data.split.train.size());
  if (images >= global_batch) return images / global_batch;
  return InvalidArgument(
      fmt::format("{} images to train on are fewer than one batch of {}; take train.batch lower "
                  "(of several ranks: or --local-batch, or fewer ranks)",
                  images, global_batch));
}

// How the ranks divide what they compute with, and the images of a step.
StatusOr<WorkerDivision> Divide(TrainingRun* run, const SavedBatches& saved, TrainingWorld* world) {
  const RunConfig& config = run->config();
  const MeasureSpeed measure = [&](int64_t images) {
    return MeasureRankSpeed(*run->options.loaded, images, world);
  };
  if (UsesServers(config.dist().asynchronous())) {
    return DivideAmongWorkers(run->options.batch, config, saved, measure, world);
  }
  WorkerDivision division;
  RT_ASSIGN_OR_RETURN(division.batches,
                      DivideBatch(run->options.batch, config.train(), saved, measure, world));
  division.images_per_step = division.batches.own.global_batch;
  return division;
}

// Ranks that divide layers compute the same layers on the images of all.
Status CheckEvenShares(const TrainingRun& run, const BatchDivision& division) {
  const std::vector<int64_t>& batches = division.all.batches;
  if (!run.shards.divides() ||
      std::ranges::adjacent_find(batches, std::not_equal_to()) == batches.end()) {
    return OkStatus();
  }
  return run.options.loaded->source.Error(
      "dist.model_parallel.linear",
      fmt::format("the ranks take batches of {} images; those that divide layers among them need "
                  "as many images each: take another train.batch or number of ranks, without "
                  "--local-batch",
                  fmt::join(batches, ", ")));
}

// A pipeline's ranks take the same rows, one after the other.
Status CheckPipelineRequest(const TrainingRun& run) {
  const BatchRequest& batch = run.options.batch;
  if (!run.stage.divides() || (batch.local == 0 && !batch.by_speed)) return OkStatus();
  return run.options.loaded->source.Error(
      "dist.model_parallel.pipeline.stages",
      "the stages of a pipeline compute the same images: leave out --local-batch; train.batch is "
      "that of a pipeline");
}

// All ranks, where they have layers of their own.
StatusOr<std::unique_ptr<TrainingWorld>> WorldOfReplicas(const TrainingRun& run,
                                                         TrainingWorld* world) {
  const StageChoice& choice = run.stage;
  RT_RETURN_IF_ERROR(world->Agree("the cut of the network", choice.Describe()));
  std::unique_ptr<TrainingWorld> own;
  for (int stage = 0; stage < choice.shape.stages; ++stage) {
    RT_ASSIGN_OR_RETURN(auto replicas,
                        world->OfGroup(RankGroup(choice.Replicas(stage)), run.config().dist()));
    if (replicas != nullptr) own = std::move(replicas);
  }
  return own;
}

// Images over which an update takes its mean, as the learning rate has to fit.
int64_t BatchOfAnUpdate(const RunConfig& config, const WorkerDivision& division) {
  const bool own =
      UsesLocalRounds(config.dist()) && config.dist().local().rate_batch() == LocalConfig::OWN;
  const auto ranks = std::max<int64_t>(std::ssize(division.batches.all.batches), 1);
  return own ? std::max<int64_t>(division.images_per_step / ranks, 1) : division.images_per_step;
}

// How the run began, as far as its rate depends on it.
struct Beginning {
  OptimConfig optim;  // with begun_epochs
  bool has_weights = false;
};

// As the config of `source_rank` says: those of others may not know it (config_fields.h).
StatusOr<Beginning> ShareBeginning(const RunConfig& config, int source_rank, TrainingWorld* world) {
  Beginning beginning{.optim = config.optim()};
  if (!RateFollowsLength(config.optim())) return beginning;
  BatchScalingConfig* const scaling = beginning.optim.mutable_batch_scaling();
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> shared,
                      world->ShareNumbers({config.train().weights().empty() ? 0 : 1,
                                           std::bit_cast<int64_t>(scaling->begun_epochs())},
                                          source_rank));
  beginning.has_weights = shared.at(0) != 0;
  scaling->set_begun_epochs(std::bit_cast<double>(shared.at(1)));
  return beginning;
}

}  // namespace

StatusOr<Generation> Generation::Create(TrainingRun* run, const ResumePoint& point,
                                        TrainingWorld* world) {
  const RunConfig& config = run->config();
  const TrainingData& data = *run->options.data;
  RT_RETURN_IF_ERROR(world->Agree("the list of images", fmt::format("{:016x}", data.fingerprint)));
  RT_RETURN_IF_ERROR(CheckPipelineRequest(*run));
  std::unique_ptr<TrainingWorld> own_replicas;
  std::unique_ptr<StageLink> link;
  if (run->stage.divides()) {
    RT_ASSIGN_OR_RETURN(own_replicas, WorldOfReplicas(*run, world));
    link = std::make_unique<StageLink>(world, &run->stage);
  }
  TrainingWorld* const replicas = own_replicas ? own_replicas.get() : world;
  SavedBatches saved{.batches = point.division, .source_rank = point.source_rank};
  if (run->stage.divides()) {  // the source need not be among the replicas
    RT_ASSIGN_OR_RETURN(saved.batches, ShareBatches(point.division, point.source_rank, world));
    saved.source_rank = 0;
  }
  RT_ASSIGN_OR_RETURN(WorkerDivision division, Divide(run, saved, replicas));
  RT_RETURN_IF_ERROR(CheckEvenShares(*run, division.batches));
  const int64_t global_batch = division.images_per_step;
  RT_ASSIGN_OR_RETURN(const int64_t batches_per_epoch, BatchesPerEpoch(global_batch, data));
  RT_ASSIGN_OR_RETURN(const int64_t most_batches,
                      MostBatches(config.optim(), global_batch, std::ssize(data.split.train)));
  if (most_batches > 1 && UsesServers(config.dist().asynchronous())) {
    return run->options.loaded->source.Error("optim.batch_growth",
                                             "servers make an update of what arrives: the batch "
                                             "cannot grow; leave batch_growth away");
  }
  RT_ASSIGN_OR_RETURN(const Beginning begun, ShareBeginning(config, point.source_rank, world));
  ScaledOptim optim = ScaleToBatch(begun.optim, {.rank = config.train().batch(),
                                                 .global = BatchOfAnUpdate(config, division),
                                                 .step = global_batch,
                                                 .steps_per_epoch = batches_per_epoch,
                                                 .epochs = config.train().epochs(),
                                                 .has_weights = begun.has_weights});
  if (run->state.average() != nullptr) run->state.average()->set_decay(optim.config.ema_decay());
  TrainingPlan plan(
      config, batches_per_epoch,
      {.optim = optim.config, .images_per_batch = global_batch, .most_batches = most_batches});
  return Generation{.run = run,
                    .world = world,
                    .replicas = replicas,
                    .own_replicas = std::move(own_replicas),
                    .link = std::move(link),
                    .division = std::move(division.batches),
                    .optim = std::move(optim),
                    .plan = std::move(plan)};
}

}  // namespace ringtail
