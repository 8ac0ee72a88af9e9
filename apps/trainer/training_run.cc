#include "apps/trainer/training_run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

#include "apps/config/run_precision.h"
#include "apps/trainer/checkpoint/start_weights.h"
#include "core/check.h"

namespace ringtail {
namespace {

Status CheckClasses(const Model& model, const Dataset& dataset) {
  const auto classes = static_cast<int64_t>(dataset.class_names().size());
  if (classes <= model.num_classes()) return OkStatus();
  return InvalidArgument(fmt::format(
      "the images have {} classes ({}), the network tells {} apart; change the last layer", classes,
      fmt::join(dataset.class_names(), ", "), model.num_classes()));
}

}  // namespace

StatusOr<TrainingRun> TrainingRun::Create(const TrainingRunOptions& options) {
  const RunConfig& config = options.loaded->config;
  RT_CHECK(!PrecisionIsOpen(config.train()), "DecidePrecision comes before the run");
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(*options.loaded));
  RT_RETURN_IF_ERROR(CheckClasses(*model, *options.data->dataset));
  std::string report;
  const auto start = [&](Model* network) -> Status {
    if (options.start_weights.empty()) return OkStatus();
    RT_ASSIGN_OR_RETURN(report, LoadStartWeights(std::string(options.start_weights),
                                                 options.data->dataset->class_names(), network));
    return OkStatus();
  };
  RT_ASSIGN_OR_RETURN(auto state, TrainingState::Create(std::move(model), config.optim(),
                                                        config.train().seed(), start));
  return TrainingRun{.options = options,
                     .start_report = std::move(report),
                     .frozen = !config.train().freeze().empty(),
                     .state = std::move(state)};
}

Status TrainingRun::Freeze(bool freeze) {
  if (freeze == frozen || config().train().freeze().empty()) return OkStatus();
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(*options.loaded, /*allocate=*/true, freeze));
  RT_ASSIGN_OR_RETURN(auto changed, TrainingState::Create(std::move(model), config().optim(),
                                                          config().train().seed()));
  changed.Adopt(state);
  state = std::move(changed);
  frozen = freeze;
  return OkStatus();
}

}  // namespace ringtail
