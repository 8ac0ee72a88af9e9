#include "apps/emulator/emulated_job.h"

#include <fmt/core.h>

#include <numeric>
#include <utility>

#include "apps/emulator/measured_compute.h"
#include "apps/trainer/evaluation.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"
#include "optim/batch_growth.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

Status CheckServers(const LoadedConfig& loaded) {
  const AsynchronousConfig& config = loaded.config.dist().asynchronous();
  if (!UsesServers(config)) return OkStatus();
  if (config.dedicated()) {
    return loaded.source.Error("dist.asynchronous.dedicated",
                               "emulated servers are on the hosts of workers: leave dedicated out");
  }
  if (config.replicas() == 0) return OkStatus();
  return loaded.source.Error("dist.asynchronous.replicas",
                             "emulated servers do not die, and what replicas cost is not "
                             "emulated: leave replicas out");
}

Status CheckTraining(const LoadedConfig& loaded) {
  const TrainConfig& train = loaded.config.train();
  if (train.freeze_epochs() > 0) {
    return loaded.source.Error("train.freeze_epochs",
                               "an emulation cannot unfreeze layers; leave freeze_epochs out");
  }
  if (train.patience() > 0) {
    return loaded.source.Error("train.patience",
                               "an emulation ends with its last step or at train.until_accuracy: "
                               "leave patience out");
  }
  if (train.on_nan() == TrainConfig::STOP) return OkStatus();
  return loaded.source.Error("train.on_nan",
                             "an emulation ends at the first loss that is not finite: set "
                             "train.on_nan to STOP");
}

// A run that uses these does something else than what would be emulated.
Status CheckConfig(const LoadedConfig& loaded, const EmulationScript& script) {
  const DistConfig& dist = loaded.config.dist();
  if (dist.plan() == DistConfig::AUTO && !dist.has_planned()) {
    return loaded.source.Error("dist.plan",
                               "an emulation does not plan: set dist.plan to CONFIG, train.batch "
                               "to the batch of each worker, and what they exchange "
                               "(`dogs_vs_cats plan` says what it would choose)");
  }
  if (dist.sync_batch_norm() && script.workers() + script.join_size() > 1) {
    return loaded.source.Error("dist.sync_batch_norm",
                               "an emulation computes one worker after the other, so batch norm "
                               "cannot see all of them; leave sync_batch_norm away");
  }
  if (UsesPipeline(dist)) {
    return loaded.source.Error("dist.model_parallel.pipeline.stages",
                               "the emulator computes whole networks: leave it out");
  }
  if (dist.model_parallel().linear() != ModelParallelConfig::WHOLE) {
    return loaded.source.Error("dist.model_parallel.linear",
                               "an emulation knows no layers that ranks divide; their mathematics "
                               "is that of whole ones: leave dist.model_parallel out");
  }
  RT_RETURN_IF_ERROR(CheckServers(loaded));
  return CheckTraining(loaded);
}

// Of all workers in a step; with servers, of one update.
int64_t ImagesPerStep(const RunConfig& config, const EmulationScript& script) {
  const AsynchronousConfig& servers = config.dist().asynchronous();
  const int64_t batch = config.train().batch();
  if (!UsesServers(servers)) return batch * script.workers();
  const Grouping grouping = RuleOf(servers).grouping;
  return batch * grouping.gradients_per_push * grouping.PushesPerUpdate(script.workers());
}

}  // namespace

StatusOr<std::unique_ptr<EmulatedJob>> EmulatedJob::Create(const LoadedConfig* loaded,
                                                           const TrainingData* data,
                                                           const EmulationScript& script) {
  RT_RETURN_IF_ERROR(CheckConfig(*loaded, script));
  const RunConfig& config = loaded->config;
  const int64_t batch = config.train().batch(), global_batch = ImagesPerStep(config, script);
  const int64_t images = std::ssize(data->split.train);
  if (images < global_batch) {
    return InvalidArgument(fmt::format(
        "{} images to train on are fewer than one batch of {} over all workers; take a lower "
        "train.batch or fewer workers",
        images, global_batch));
  }
  RT_ASSIGN_OR_RETURN(
      TrainingRun run,
      TrainingRun::Create(
          {.loaded = loaded, .data = data, .start_weights = config.train().weights()}));
  RT_ASSIGN_OR_RETURN(const int64_t most_batches,
                      MostBatches(config.optim(), global_batch, images));
  if (most_batches > 1 && UsesServers(config.dist().asynchronous())) {
    return loaded->source.Error("optim.batch_growth",
                                "servers make an update of what arrives: the "
                                "batch cannot grow; leave batch_growth away");
  }
  const int64_t per_epoch = images / global_batch;
  const bool scales_to_own =
      UsesLocalRounds(config.dist()) && config.dist().local().rate_batch() == LocalConfig::OWN;
  ScaledOptim optim =
      ScaleToBatch(config.optim(), {.rank = batch,
                                    .global = scales_to_own ? batch : global_batch,
                                    .step = global_batch,
                                    .steps_per_epoch = per_epoch,
                                    .epochs = config.train().epochs(),
                                    .has_weights = !config.train().weights().empty()});
  if (run.state.average() != nullptr) run.state.average()->set_decay(optim.config.ema_decay());
  TrainingPlan plan(
      config, per_epoch,
      {.optim = optim.config, .images_per_batch = global_batch, .most_batches = most_batches});
  std::unique_ptr<EmulatedJob> job(
      new EmulatedJob(loaded, data, script, std::move(run), std::move(optim), std::move(plan)));
  RT_RETURN_IF_ERROR(job->Prepare());
  return job;
}

EmulatedJob::EmulatedJob(const LoadedConfig* loaded, const TrainingData* data,
                         const EmulationScript& script, TrainingRun run, ScaledOptim optim,
                         TrainingPlan plan)
    : loaded_(loaded),
      data_(data),
      script_(script),
      run_(std::move(run)),
      optim_(std::move(optim)),
      plan_(std::move(plan)),
      net_(&loaded->config, data, &plan_, run_.state.model()),
      speed_(SpeedOf(script)),
      network_(NetworkOf(script), script.workers_per_host(), &queue_) {}

Status EmulatedJob::Prepare() {
  ElementRange rows{.count = config().train().batch()};
  if (!UsesServers(config().dist().asynchronous())) {
    RT_ASSIGN_OR_RETURN(rows, RowsOf(0, FirstWorkers().size()));
  }
  RT_ASSIGN_OR_RETURN(const std::span<const LayerInfo> layers, net_.Layers(rows.count));
  sizes_ =
      SizesOfExchange(*arena(), layers, config().dist(), run_.state.optimizer()->PreparableWork());
  if (!script_.has_compute()) RT_RETURN_IF_ERROR(Measure(rows));
  network_.cores()->set_cores(compute().cores());
  network_.set_wake_delays(WakeDelays(script_.seed(), compute().wake_delay_ms() * kSecondsPerMs));
  return OkStatus();
}

Status EmulatedJob::Measure(ElementRange rows) {
  RT_ASSIGN_OR_RETURN(
      const auto images,
      StepImages::Create(
          *run_.state.model(), config(),
          {.batch = rows.count, .image_size = plan_.PhaseAt(0).image_size, .data = data_}));
  RT_ASSIGN_OR_RETURN(*script_.mutable_compute(),
                      MeasureCompute(&net_, rows, images.get(), config(), arena(),
                                     plan_.growth_run().images_per_batch));
  return OkStatus();
}

std::vector<int> EmulatedJob::FirstWorkers() const {
  std::vector<int> workers(static_cast<size_t>(script_.workers()));
  std::iota(workers.begin(), workers.end(), 0);
  return workers;
}

StatusOr<ElementRange> EmulatedJob::RowsOf(size_t member, size_t members) const {
  const int64_t unit = config().train().accumulation();
  const int64_t images = plan_.growth_run().images_per_batch, units = images / unit;
  const auto count = static_cast<int64_t>(members);
  if (units < count || images % unit != 0) {
    return InvalidArgument(
        fmt::format("{} images cannot be divided among {} workers, each with a multiple of {} "
                    "(train.accumulation)",
                    images, count, unit));
  }
  const ElementRange part = EvenPart(units, count, static_cast<int64_t>(member));
  return ElementRange{.offset = part.offset * unit, .count = part.count * unit};
}

double EmulatedJob::RateOf(int64_t step) const {
  return GrownRate(optim_.config, plan_.growth_run(), plan_.BatchesBefore(step),
                   plan_.BatchesOf(step));
}

int64_t EmulatedJob::EndOfPass(int worker, int64_t step, ElementRange rows, double fraction) const {
  const double images = static_cast<double>(rows.count) * plan_.WorkOf(step);
  const double ms = compute().fixed_ms() + compute().ms_per_image() * images;
  const auto missing = missing_ns_.find(worker);
  const double missing_s = missing == missing_ns_.end() ? 0 : Seconds(missing->second);
  return speed_.EndOf(worker, step, queue_.now_ns(), fraction * (ms * kSecondsPerMs + missing_s));
}

int64_t EmulatedJob::BeginPass(int worker, int64_t step, ElementRange rows) {
  missing_ns_[worker] = network_.cores()->TakeMissingNs(worker);
  const int64_t end_ns = EndOfPass(worker, step, rows);
  network_.cores()->Computes(worker, end_ns);
  return end_ns;
}

int64_t EmulatedJob::EndOfUpdate(int worker, int64_t step, int64_t begin_ns) const {
  return EndOfWorkFrom(begin_ns, worker, step, compute().update_ms() * kSecondsPerMs);
}

int64_t EmulatedJob::EndOfWork(int worker, int64_t step, double seconds) const {
  return EndOfWorkFrom(queue_.now_ns(), worker, step, seconds);
}

int64_t EmulatedJob::EndOfWorkFrom(int64_t begin_ns, int worker, int64_t step,
                                   double seconds) const {
  return speed_.EndOf(worker, step, begin_ns, seconds);
}

StatusOr<const std::vector<ExchangeItem>*> EmulatedJob::ItemsOf(const std::vector<int>& workers) {
  const auto found = items_.find(workers);
  if (found != items_.end()) return &found->second;
  RT_ASSIGN_OR_RETURN(std::vector<ExchangeItem> items,
                      ItemsOfExchange(sizes_, run_.state.model()->arena().parameters(), workers,
                                      network_, config().dist(), /*layers=*/nullptr, {}));
  return &(items_[workers] = std::move(items));
}

Status EmulatedJob::EvaluateIfDue(int64_t since, int64_t step) {
  if (!plan_.EvaluationIsDue(since, step)) return OkStatus();
  const Stopwatch watch;
  const std::vector<int64_t>& images = data_->split.validation;
  WeightAverage* const average = run_.state.average();
  if (average != nullptr) average->Swap();
  const auto logits =
      ComputeLogits(run_.state.model(), *data_->dataset, images, config().data(),
                    EvaluationOptionsOf(config(), plan_.PhaseAt(step - 1).image_size));
  if (average != nullptr) average->Swap();
  RT_RETURN_IF_ERROR(Status(logits.status()));
  log_.AddEvaluation(queue_.now_ns(), step, plan_.EpochAt(step),
                     Score(*logits, *data_->dataset, images));
  real_.evaluation += watch.Seconds();
  return OkStatus();
}

bool EmulatedJob::IsEnd(int64_t step) const {
  const double until = config().train().until_accuracy();
  return step >= plan_.total_steps() || (until > 0 && log_.summary().best_accuracy >= until);
}

}  // namespace ringtail
