#include "apps/train_config_check.h"

#include <fmt/core.h>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace ringtail {
namespace {

constexpr int64_t kMaxBatch = 65536;
constexpr int64_t kMaxThreads = 4096;
constexpr int64_t kMinImageSize = 8, kMaxImageSize = 1024;  // as data.image_size
constexpr double kMaxEpochs = 1e6;
// Parts of a batch start at a multiple of a cache line if the side is a multiple of this.
constexpr int64_t kAccumulationSizeUnit = 4;

struct IntegerField {
  const char* name;
  int64_t value, least, most;
};

Status CheckIntegers(std::initializer_list<IntegerField> fields, const ConfigSource& source) {
  for (const IntegerField& field : fields) {
    if (field.value >= field.least && field.value <= field.most) continue;
    return source.Error(fmt::format("train.{}", field.name),
                        fmt::format("{} is {}; it must be {} .. {}", field.name, field.value,
                                    field.least, field.most));
  }
  return OkStatus();
}

Status CheckEpochs(const TrainConfig& train, const ConfigSource& source) {
  if (!(train.epochs() > 0 && train.epochs() <= kMaxEpochs)) {
    return source.Error(
        "train.epochs",
        fmt::format("epochs is {}; it must be above 0 and at most {}", train.epochs(), kMaxEpochs));
  }
  if (!(train.evaluate_every_epochs() > 0)) {
    return source.Error("train.evaluate_every_epochs",
                        fmt::format("evaluate_every_epochs is {}; it must be above 0",
                                    train.evaluate_every_epochs()));
  }
  if (!(train.until_accuracy() >= 0 && train.until_accuracy() <= 1)) {
    return source.Error("train.until_accuracy",
                        fmt::format("until_accuracy is {}; it is a fraction, 0 .. 1 (0.95 is 95 %)",
                                    train.until_accuracy()));
  }
  return OkStatus();
}

Status CheckImageSize(int64_t size, const std::string& field, const ConfigSource& source) {
  if (size >= kMinImageSize && size <= kMaxImageSize) return OkStatus();
  const std::string name = field.substr(field.rfind('.') + 1);
  return source.Error(field, fmt::format("{} is {}; it must be {} .. {} pixels", name, size,
                                         kMinImageSize, kMaxImageSize));
}

Status CheckPhases(const TrainConfig& train, const ConfigSource& source) {
  double last = -1;  // the first phase may be there from the beginning
  for (int i = 0; i < train.phase_size(); ++i) {
    const std::string path = fmt::format("train.phase[{}]", i);
    const PhaseConfig& phase = train.phase(i);
    if (!(phase.from_epoch() >= 0 && phase.from_epoch() > last)) {
      return source.Error(
          path + ".from_epoch",
          i == 0
              ? fmt::format("from_epoch is {}; it must be at least 0", phase.from_epoch())
              : fmt::format("from_epoch is {}; it must be above {}, where the phase before begins",
                            phase.from_epoch(), last));
    }
    last = phase.from_epoch();
    RT_RETURN_IF_ERROR(CheckImageSize(phase.image_size(), path + ".image_size", source));
  }
  return OkStatus();
}

Status CheckAccumulation(const RunConfig& config, const ConfigSource& source) {
  const TrainConfig& train = config.train();
  if (train.batch() % train.accumulation() != 0) {
    return source.Error("train.accumulation",
                        fmt::format("accumulation is {}, which does not divide the batch of {}",
                                    train.accumulation(), train.batch()));
  }
  if (train.accumulation() == 1) return OkStatus();
  const auto uneven = [](int64_t size) { return size % kAccumulationSizeUnit != 0; };
  const auto error = [&](const std::string& field) {
    return source.Error(field, fmt::format("with accumulation the picture's side must be a "
                                           "multiple of {} pixels",
                                           kAccumulationSizeUnit));
  };
  if (uneven(config.data().image_size())) return error("data.image_size");
  for (int i = 0; i < train.phase_size(); ++i) {
    if (uneven(train.phase(i).image_size()))
      return error(fmt::format("train.phase[{}].image_size", i));
  }
  return OkStatus();
}

}  // namespace

Status ValidateTrainConfig(const RunConfig& config, const ConfigSource& source) {
  const TrainConfig& train = config.train();
  RT_RETURN_IF_ERROR(CheckEpochs(train, source));
  RT_RETURN_IF_ERROR(
      CheckIntegers({{"batch", train.batch(), 1, kMaxBatch},
                     {"accumulation", train.accumulation(), 1, kMaxBatch},
                     {"threads", train.threads(), 0, kMaxThreads},
                     {"evaluation_batch", train.evaluation_batch(), 0, kMaxBatch},
                     {"checkpoint_every_steps", train.checkpoint_every_steps(), 0, INT32_MAX},
                     {"keep_checkpoints", train.keep_checkpoints(), 1, INT32_MAX},
                     {"log_every_steps", train.log_every_steps(), 1, INT32_MAX}},
                    source));
  if (train.evaluation_image_size() != 0) {
    RT_RETURN_IF_ERROR(
        CheckImageSize(train.evaluation_image_size(), "train.evaluation_image_size", source));
  }
  RT_RETURN_IF_ERROR(CheckPhases(train, source));
  return CheckAccumulation(config, source);
}

}  // namespace ringtail
