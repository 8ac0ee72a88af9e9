#include "apps/trainer/training_run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <utility>

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
  RT_ASSIGN_OR_RETURN(auto model, CreateModel(*options.loaded));
  RT_RETURN_IF_ERROR(CheckClasses(*model, *options.data->dataset));
  RT_ASSIGN_OR_RETURN(
      auto state, TrainingState::Create(std::move(model), config.optim(), config.train().seed()));
  return TrainingRun{.options = options, .state = std::move(state)};
}

}  // namespace ringtail
