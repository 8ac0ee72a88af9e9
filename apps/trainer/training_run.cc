#include "apps/trainer/training_run.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "apps/config/run_precision.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "apps/trainer/checkpoint/start_weights.h"
#include "apps/trainer/memory_need.h"
#include "apps/trainer/pipeline/stage_state.h"
#include "apps/trainer/sharding/whole_state.h"
#include "core/check.h"

namespace ringtail {
namespace {

// Images of a part of this rank's batch; 0: the batch is not divided yet.
int64_t PartOfBatch(const TrainingRunOptions& options) {
  const RunConfig& config = options.loaded->config;
  if (options.resumes || options.batch.by_speed) return 0;
  return options.batch.local > 0 ? options.batch.local / config.train().accumulation()
                                 : PartBatch(config);
}

std::span<const float> ValueOf(const ParameterArena& arena, std::string_view name) {
  for (const auto list : {arena.parameters(), arena.buffers(), arena.fixed()}) {
    for (const Parameter& p : list) {
      if (p.spec.name == name) return p.value();
    }
  }
  RT_CHECK(false, "both networks have the same layers");
}

// Every parameter and buffer of `own` from the same network that is not divided.
void CopyOwnRows(const ParameterArena& whole, ParameterArena* own) {
  for (const auto list : {own->parameters(), own->buffers(), own->fixed()}) {
    for (const Parameter& p : list) {
      std::ranges::copy(OwnRows(p.spec, ValueOf(whole, p.spec.name)), p.value().begin());
    }
  }
}

}  // namespace

StatusOr<TrainingRun> TrainingRun::Create(const TrainingRunOptions& options) {
  const RunConfig& config = options.loaded->config;
  RT_CHECK(!PrecisionIsOpen(config.train()), "DecidePrecision comes before the run");
  RT_ASSIGN_OR_RETURN(ShardChoice shards,
                      ChooseShards(*options.loaded, options.rank, options.ranks));
  RT_ASSIGN_OR_RETURN(StageChoice stage,
                      ChooseStage(*options.loaded, options.cut_after, options.rank, options.ranks));
  RT_ASSIGN_OR_RETURN(const auto planned,
                      CreateModel(*options.loaded, /*allocate=*/false,
                                  /*freeze=*/true, shards.request, stage.request));
  RT_RETURN_IF_ERROR(CheckMemoryToTrain(*options.loaded, planned.get(), PartOfBatch(options),
                                        MostAlive(stage.shape, stage.stage)));
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(*options.loaded, /*allocate=*/true, /*freeze=*/true,
                                              shards.request, stage.request));
  RT_RETURN_IF_ERROR(options.data->CheckClasses(model->num_classes()));
  std::string report;
  const auto load = [&](Model* network) -> Status {
    if (options.start_weights.empty()) return OkStatus();
    RT_ASSIGN_OR_RETURN(report, LoadStartWeights(std::string(options.start_weights),
                                                 options.data->dataset->class_names(), network));
    return OkStatus();
  };
  std::unique_ptr<Model> whole;
  const auto start = [&](Model* network) -> Status {
    const bool whole_network = !shards.divides() && !stage.divides();
    if (whole_network || options.start_weights.empty()) return load(network);
    RT_ASSIGN_OR_RETURN(whole, CreateModel(*options.loaded));
    whole->Initialize(config.train().seed());
    RT_RETURN_IF_ERROR(load(whole.get()));
    CopyOwnRows(whole->arena(), &network->arena());
    return OkStatus();
  };
  RT_ASSIGN_OR_RETURN(auto state,
                      TrainingState::Create(std::move(model), config.optim(), config.train().seed(),
                                            start, {.bf16_products = options.bf16_products}));
  return TrainingRun{.options = options,
                     .start_report = std::move(report),
                     .frozen = !config.train().freeze().empty(),
                     .shards = std::move(shards),
                     .stage = std::move(stage),
                     .state = std::move(state),
                     .start_model = std::move(whole)};
}

Status TrainingRun::ShareParts(TrainingWorld* world, StageLink* link, const ResumePoint& point) {
  if (!is_divided()) return OkStatus();
  FindWhole whole;
  if (point.tensors) {
    whole = [&](const std::string& name, const Shape& shape) {
      return point.tensors->F32(name, shape);
    };
  } else if (start_model) {
    whole = [&](const std::string& name, const Shape&) -> StatusOr<std::span<const float>> {
      constexpr std::string_view kAverage = kAveragePrefix;
      if (name.starts_with("optimizer.")) return std::span<const float>();  // it begins at zero
      const bool average = name.starts_with(kAverage);
      return ValueOf(start_model->arena(), average ? name.substr(kAverage.size()) : name);
    };
  }
  RT_RETURN_IF_ERROR(link != nullptr ? ScatterStages(link, point.source_rank, whole, &state)
                                     : ScatterRows(world, point.source_rank, whole, &state));
  start_model.reset();
  return OkStatus();
}

Numerics TrainingRun::numerics() const {
  Numerics numerics = CurrentNumerics();
  if (Optimizer::TakesBf16Products(config().optim())) {
    numerics.matrices = options.bf16_products ? "bf16" : "f32";
  }
  return numerics;
}

Status TrainingRun::Freeze(bool freeze, int64_t thaw_step) {
  if (freeze == frozen || config().train().freeze().empty()) return OkStatus();
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(*options.loaded, /*allocate=*/true, freeze,
                                              shards.request, stage.request));
  RT_ASSIGN_OR_RETURN(auto changed, TrainingState::Create(
                                        std::move(model), config().optim(), config().train().seed(),
                                        /*start=*/{}, {.bf16_products = options.bf16_products}));
  changed.Adopt(state, thaw_step);
  state = std::move(changed);
  frozen = freeze;
  return OkStatus();
}

}  // namespace ringtail
