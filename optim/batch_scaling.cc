#include "optim/batch_scaling.h"

#include <fmt/format.h>

#include <cmath>

#include "core/check.h"
#include "core/config/field_check.h"
#include "core/text/counted.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

// A batch that differs from the reference by a smaller factor may keep its rate.
constexpr double kLargeChange = 2;
// Measured up to here (apps/studies/rates.md): runs of 60 to 2,000 steps.
constexpr double kMostForAShortRun = 2;
constexpr double kMostEpochs = 1e6;  // as of train.epochs

int64_t ReferenceBatch(const OptimConfig& config, const BatchSizes& sizes) {
  const int64_t stated = config.batch_scaling().reference_batch();
  return stated > 0 ? stated : sizes.rank;
}

int64_t ImagesOfAStep(const BatchSizes& sizes) {
  return sizes.step > 0 ? sizes.step : sizes.global;
}

double RateFactor(BatchScalingConfig::Rule rule, double k) {
  switch (rule) {
    case BatchScalingConfig::NONE:
      return 1;
    case BatchScalingConfig::LINEAR:
      return k;
    case BatchScalingConfig::SQUARE_ROOT:
      return std::sqrt(k);
  }
  return 1;
}

const char* RuleName(BatchScalingConfig::Rule rule) {
  switch (rule) {
    case BatchScalingConfig::NONE:
      return "not scaled";
    case BatchScalingConfig::LINEAR:
      return "linear";
    case BatchScalingConfig::SQUARE_ROOT:
      return "square root";
  }
  return "";
}

// Of an average that spans as many images as with the reference.
double ScaledDecay(const OptimConfig& config, const BatchSizes& sizes, int64_t reference) {
  if (config.batch_scaling().rule() == BatchScalingConfig::NONE) return config.ema_decay();
  const auto step = static_cast<double>(ImagesOfAStep(sizes));
  return std::pow(config.ema_decay(), step / static_cast<double>(reference));
}

std::string DescribeDecay(double before, double after) {
  return before == after ? "" : fmt::format(", ema_decay {:.6g} -> {:.6g}", before, after);
}

// Of a run as it began.
double ImagesOfRun(const OptimConfig& config, const BatchSizes& sizes) {
  const double begun = config.batch_scaling().begun_epochs();
  return (begun > 0 ? begun : sizes.epochs) *
         static_cast<double>(sizes.steps_per_epoch * ImagesOfAStep(sizes));
}

// Of the rate, for a run that is longer or shorter than the one that it was found with.
double LengthFactor(const OptimConfig& config, const BatchSizes& sizes, double images) {
  if (!RateFollowsLength(config) || images == 0) return 1;
  const auto reference = static_cast<double>(config.batch_scaling().reference_images());
  const double most = sizes.has_weights ? 1 : kMostForAShortRun;
  return std::min(most, std::sqrt(reference / images));
}

// " of the 10 epochs that the run began with"
std::string DescribeBeginning(const OptimConfig& config, const BatchSizes& sizes) {
  const double begun = config.batch_scaling().begun_epochs();
  if (begun == 0 || begun == sizes.epochs) return "";
  return fmt::format(" of the {} that the run began with", Counted(begun, "epoch"));
}

// "warm-up 5 epochs = 195 steps from 0.1"
std::string DescribeWarmup(const OptimConfig& config, const BatchSizes& sizes) {
  const WarmupConfig& warmup = config.warmup();
  if (warmup.epochs() == 0) return "no warm-up";
  const double steps = warmup.epochs() * static_cast<double>(sizes.steps_per_epoch);
  return fmt::format("warm-up {} = {} from {:.6g}", Counted(warmup.epochs(), "epoch"),
                     Counted(std::llround(steps), "step"),
                     config.learning_rate() * warmup.start_fraction());
}

std::string WarnIfNothingScales(const OptimConfig& config, int64_t reference, int64_t global) {
  const double k = static_cast<double>(global) / static_cast<double>(reference);
  if (config.batch_scaling().rule() != BatchScalingConfig::NONE) return "";
  if (Optimizer::AdaptsToBatch(config)) return "";
  if (k < kLargeChange && k > 1 / kLargeChange) return "";
  return fmt::format(
      "the batch over all ranks is {}, the learning rate of {:.6g} is for {}, and nothing scales "
      "it; set optim.batch_scaling.rule to LINEAR (sgd) or SQUARE_ROOT (adam), or "
      "optim.batch_scaling.reference_batch to {} if the rate was found for it",
      global, config.learning_rate(), reference, global);
}

std::string WarnOfFewSteps(int64_t reference, const BatchSizes& sizes) {
  if (sizes.global <= reference || sizes.steps_per_epoch >= kFewStepsPerEpoch) return "";
  return fmt::format(
      "a batch of {} leaves {} in an epoch; fewer than {} seldom reach the accuracy of smaller "
      "batches in the same number of epochs: take train.batch lower, or train.epochs higher",
      sizes.global, Counted(sizes.steps_per_epoch, "step"), kFewStepsPerEpoch);
}

// Returns a warning if it changed the warm-up.
std::string StretchWarmup(const BatchSizes& sizes, WarmupConfig* warmup) {
  const double steps_per_epoch = static_cast<double>(sizes.steps_per_epoch);
  const double steps = warmup->epochs() * steps_per_epoch;
  if (steps >= warmup->min_steps()) return "";
  const double epochs = warmup->min_steps() / steps_per_epoch;
  std::string warning =
      fmt::format("a warm-up of {} would be {}; stretched to {} (optim.warmup.min_steps)",
                  Counted(warmup->epochs(), "epoch"), Counted(steps, "step"), warmup->min_steps());
  if (sizes.epochs > 0 && epochs >= sizes.epochs) {
    warning += fmt::format(": the run ends before, after {}; set it lower, or train.epochs higher",
                           Counted(sizes.epochs * steps_per_epoch, "step"));
  }
  warmup->set_epochs(epochs);
  return warning;
}

}  // namespace

Status ValidateBatchScaling(const OptimConfig& config, const ConfigSource* source) {
  RT_RETURN_IF_ERROR(
      FieldCheck(source, "optim.warmup").NotNegative("min_steps", config.warmup().min_steps()));
  const FieldCheck check(source, "optim.batch_scaling");
  RT_RETURN_IF_ERROR(
      check.NotNegative("reference_batch", config.batch_scaling().reference_batch()));
  RT_RETURN_IF_ERROR(
      check.NotNegative("reference_images", config.batch_scaling().reference_images()));
  return check.Between("begun_epochs", config.batch_scaling().begun_epochs(), 0.0, kMostEpochs);
}

bool RateFollowsLength(const OptimConfig& config) {
  return config.batch_scaling().rule() != BatchScalingConfig::NONE &&
         config.batch_scaling().reference_images() > 0;
}

ScaledOptim ScaleToBatch(const OptimConfig& config, const BatchSizes& sizes) {
  RT_CHECK(sizes.rank > 0 && sizes.global > 0 && sizes.steps_per_epoch > 0, "an empty batch");
  const int64_t reference = ReferenceBatch(config, sizes);
  const auto rule = config.batch_scaling().rule();
  const double k = static_cast<double>(sizes.global) / static_cast<double>(reference);
  const double factor = RateFactor(rule, k);
  const double images = ImagesOfRun(config, sizes);
  const double length_factor = LengthFactor(config, sizes, images);

  ScaledOptim scaled{.config = config};
  const auto warn = [&](std::string text) {
    if (!text.empty()) scaled.warnings.push_back(std::move(text));
  };
  scaled.config.set_learning_rate(config.learning_rate() * factor * length_factor);
  if (factor > 1 && !config.warmup().has_start_fraction()) {
    scaled.config.mutable_warmup()->set_start_fraction(1 / factor);
  }
  if (config.ema_decay() > 0) {
    scaled.config.set_ema_decay(ScaledDecay(config, sizes, reference));
  }
  warn(WarnIfNothingScales(config, reference, sizes.global));
  warn(WarnOfFewSteps(reference, sizes));
  warn(StretchWarmup(sizes, scaled.config.mutable_warmup()));
  if (sizes.global != reference) {
    scaled.summary =
        fmt::format("learning rate {:.6g} at batch {} -> {:.6g} at batch {} ({}), {}{}",
                    config.learning_rate(), reference, config.learning_rate() * factor,
                    sizes.global, RuleName(rule), DescribeWarmup(scaled.config, sizes),
                    DescribeDecay(config.ema_decay(), scaled.config.ema_decay()));
  }
  if (length_factor != 1) {
    scaled.summary += fmt::format(
        "{}learning rate {:.6g} for {} images -> {:.3g} for {:.0f}{} ({})",
        scaled.summary.empty() ? "" : "; ", config.learning_rate() * factor,
        config.batch_scaling().reference_images(), scaled.config.learning_rate(), images,
        DescribeBeginning(config, sizes),
        length_factor == kMostForAShortRun ? "the most for a short run" : "square root");
  }
  return scaled;
}

}  // namespace ringtail
