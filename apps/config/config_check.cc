#include "apps/config/config_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/config/field_check.h"
#include "data/config_check.h"

namespace ringtail {
namespace {

constexpr int kMaxBatch = 65536, kMaxThreads = 4096;
constexpr double kMaxEpochs = 1e6;
// Parts of a batch start at a multiple of a cache line if the side is a multiple of this.
constexpr int64_t kAccumulationSizeUnit = 4;

Status CheckMeasured(const MeasuredPrecision& measured, const FieldCheck& check) {
  if (measured.precision() == AUTO) {
    return check.Error("precision", "precision is AUTO; what was taken is FLOAT32 or BFLOAT16");
  }
  RT_RETURN_IF_ERROR(check.NotNegative("float32_ms", measured.float32_ms()));
  RT_RETURN_IF_ERROR(check.NotNegative("bfloat16_ms", measured.bfloat16_ms()));
  RT_RETURN_IF_ERROR(check.AtLeast("images", measured.images(), 0));
  return check.AtLeast("image_size", measured.image_size(), 0);
}

Status CheckNumbers(const TrainConfig& train, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.PositiveUpTo("epochs", train.epochs(), kMaxEpochs));
  RT_RETURN_IF_ERROR(check.Between("batch", train.batch(), 1, kMaxBatch));
  RT_RETURN_IF_ERROR(check.Between("accumulation", train.accumulation(), 1, kMaxBatch));
  RT_RETURN_IF_ERROR(check.Between("threads", train.threads(), 0, kMaxThreads));
  RT_RETURN_IF_ERROR(check.Between("evaluation_batch", train.evaluation_batch(), 0, kMaxBatch));
  RT_RETURN_IF_ERROR(check.Positive("evaluate_every_epochs", train.evaluate_every_epochs()));
  if (train.evaluation_image_size() != 0) {
    RT_RETURN_IF_ERROR(check.Between("evaluation_image_size", train.evaluation_image_size(),
                                     kMinImageSize, kMaxImageSize));
  }
  RT_RETURN_IF_ERROR(
      check.Between("evaluation_image_scale", train.evaluation_image_scale(), 0.25, 4.0));
  RT_RETURN_IF_ERROR(check.Fraction("until_accuracy", train.until_accuracy()));
  RT_RETURN_IF_ERROR(check.AtLeast("patience", train.patience(), 0));
  RT_RETURN_IF_ERROR(check.NotNegative("freeze_epochs", train.freeze_epochs()));
  RT_RETURN_IF_ERROR(check.AtLeast("checkpoint_every_steps", train.checkpoint_every_steps(), 0));
  RT_RETURN_IF_ERROR(CheckMeasured(train.measured_precision(), check.Within("measured_precision")));
  RT_RETURN_IF_ERROR(check.AtLeast("keep_checkpoints", train.keep_checkpoints(), 1));
  return check.AtLeast("log_every_steps", train.log_every_steps(), 1);
}

Status CheckPhases(const TrainConfig& train, const FieldCheck& check) {
  for (int i = 0; i < train.phase_size(); ++i) {
    const FieldCheck in_phase = check.Within(fmt::format("phase[{}]", i));
    const PhaseConfig& phase = train.phase(i);
    RT_RETURN_IF_ERROR(in_phase.AtLeast("from_epoch", phase.from_epoch(), 0));
    if (i > 0 && phase.from_epoch() <= train.phase(i - 1).from_epoch()) {
      return in_phase.Error(
          "from_epoch",
          fmt::format("from_epoch is {}; it must be greater than {}, where the phase before begins",
                      phase.from_epoch(), train.phase(i - 1).from_epoch()));
    }
    RT_RETURN_IF_ERROR(
        in_phase.Between("image_size", phase.image_size(), kMinImageSize, kMaxImageSize));
  }
  return OkStatus();
}

bool FitsParts(int64_t image_size) { return image_size % kAccumulationSizeUnit == 0; }

Status CheckAccumulation(const RunConfig& config, const ConfigSource& source) {
  const TrainConfig& train = config.train();
  if (train.batch() % train.accumulation() != 0) {
    return source.Error("train.accumulation",
                        fmt::format("accumulation is {}, which does not divide the batch of {}",
                                    train.accumulation(), train.batch()));
  }
  if (train.accumulation() == 1) return OkStatus();
  const auto error = [&](const std::string& field) {
    return source.Error(field, fmt::format("with accumulation the image's side must be a "
                                           "multiple of {} pixels",
                                           kAccumulationSizeUnit));
  };
  if (!FitsParts(config.data().image_size())) return error("data.image_size");
  for (int i = 0; i < train.phase_size(); ++i) {
    if (!FitsParts(train.phase(i).image_size()))
      return error(fmt::format("train.phase[{}].image_size", i));
  }
  return OkStatus();
}

}  // namespace

bool MayAccumulate(const RunConfig& config) {
  const auto& phases = config.train().phase();
  return FitsParts(config.data().image_size()) &&
         std::ranges::all_of(
             phases, [](const PhaseConfig& phase) { return FitsParts(phase.image_size()); });
}

Status ValidateTrainConfig(const RunConfig& config, const ConfigSource& source) {
  const TrainConfig& train = config.train();
  const FieldCheck check(&source, "train");
  RT_RETURN_IF_ERROR(CheckNumbers(train, check));
  RT_RETURN_IF_ERROR(CheckPhases(train, check));
  return CheckAccumulation(config, source);
}

}  // namespace ringtail
