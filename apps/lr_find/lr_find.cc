#include "apps/lr_find/lr_find.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "apps/trainer/training_run.h"
#include "apps/trainer/update/batch_view.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/stop_signal.h"
#include "optim/batch_scaling.h"
#include "optim/gradient_norm.h"

namespace ringtail {
namespace {

// What computes the steps.
struct Stepper {
  TrainingRun run;
  std::unique_ptr<GradientPass> pass;
  std::unique_ptr<DataLoader> loader;
};

StatusOr<Stepper> CreateStepper(const LoadedConfig& loaded, const TrainingData& data) {
  const RunConfig& config = loaded.config;
  const int64_t image_size = TrainingImageSizes(config).front();
  RT_ASSIGN_OR_RETURN(
      TrainingRun run,
      TrainingRun::Create(
          {.loaded = &loaded, .data = &data, .start_weights = config.train().weights()}));
  RT_ASSIGN_OR_RETURN(
      auto pass, GradientPass::Create(run.state.model(), {.batch = config.train().batch(),
                                                          .parts = config.train().accumulation(),
                                                          .image_size = image_size,
                                                          .seed = config.train().seed()}));
  LoaderOptions options;
  options.batch = config.train().batch();
  options.image_size = image_size;
  options.seed = config.train().seed();
  RT_ASSIGN_OR_RETURN(auto loader, DataLoader::Create(data.dataset.get(), data.split.train,
                                                      config.data(), options));
  return Stepper{.run = std::move(run), .pass = std::move(pass), .loader = std::move(loader)};
}

}  // namespace

RateRange DefaultRange(const OptimConfig& config) {
  constexpr double kLeastMove = 1e-5, kMostMove = 2;
  switch (config.rule_case()) {
    case OptimConfig::kAdam:
    case OptimConfig::kAdamw:
      return {.from = 1e-6, .to = 1};
    case OptimConfig::kLamb:
      return {.from = 1e-5, .to = 10};
    case OptimConfig::kMuon:
      return {.from = kLeastMove / config.muon().trust(), .to = kMostMove / config.muon().trust()};
    case OptimConfig::kLars:
      return {.from = kLeastMove / config.lars().trust(), .to = kMostMove / config.lars().trust()};
    case OptimConfig::kSgd:
    case OptimConfig::RULE_NOT_SET:
      return {.from = 1e-4, .to = 10};
  }
  return {.from = 1e-4, .to = 10};
}

double AsConfigured(double rate, const RunConfig& config, int64_t training_images) {
  const int64_t batch = config.train().batch();
  const ScaledOptim scaled = ScaleToBatch(
      config.optim(), {.rank = batch,
                       .global = batch,
                       .steps_per_epoch = std::max<int64_t>(training_images / batch, 1),
                       .epochs = config.train().epochs(),
                       .has_weights = !config.train().weights().empty()});
  return rate * config.optim().learning_rate() / scaled.config.learning_rate();
}

StatusOr<TrainingData> OpenUnscanned(const DataConfig& config) {
  TrainingData data;
  RT_ASSIGN_OR_RETURN(data.dataset, Dataset::Open(config));
  RT_ASSIGN_OR_RETURN(data.split, SplitDataset(config.split(), data.dataset->samples()));
  return data;
}

StatusOr<RateCurve> SweepRates(const LoadedConfig& loaded, const TrainingData& data,
                               const RateRange& range, const RateListener& listener) {
  RT_ASSIGN_OR_RETURN(const Stepper stepper, CreateStepper(loaded, data));
  const TrainingState& state = stepper.run.state;
  const ParameterArena& arena = state.model()->arena();
  RateCurve curve(range);
  while (true) {
    if (StopSignal() != 0) return Cancelled("stopped by a signal; nothing is kept");
    const int64_t step = std::ssize(curve.points());
    RT_ASSIGN_OR_RETURN(const LoadedBatch batch, stepper.loader->Next());
    const LossResult loss = stepper.pass->Run(ViewOf(batch), {.step = step});
    const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
    const bool more = curve.Add(loss.loss_sum * mean);
    if (listener && std::ssize(curve.points()) > step) listener(curve.points().back());
    if (!more) return curve;
    const double norm = GradientNorm(arena, mean);
    const double rate = curve.points().back().rate;
    state.optimizer()->Step(step, rate, mean * ClipFactor(norm, loaded.config.optim().clip_norm()));
  }
}

}  // namespace ringtail
