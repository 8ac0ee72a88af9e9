#include "apps/config/run_precision.h"

#include <fmt/core.h>

#include "core/text/counted.h"
#include "layers/net/precision.h"

namespace ringtail {
namespace {

std::string DescribeMeasured(const MeasuredPrecision& taken) {
  const std::string name = ShortName(taken.precision());
  if (taken.float32_ms() <= 0 || taken.bfloat16_ms() <= 0) return name + ", as the run began";
  const double gain = taken.float32_ms() / taken.bfloat16_ms();
  const std::string of = fmt::format(
      "{:.4g} against {:.4g} ms for {} of {} pixels, forward and backward", taken.bfloat16_ms(),
      taken.float32_ms(), Counted(taken.images(), "image"), taken.image_size());
  if (taken.precision() == BFLOAT16) {
    return fmt::format("{}, measured {:.2f} times as fast as f32 ({})", name, gain, of);
  }
  return fmt::format("{}, since bf16 was measured {:.2f} times as fast ({}), less than {} times",
                     name, gain, of, kLeastBf16Gain);
}

}  // namespace

bool PrecisionIsOpen(const TrainConfig& train) {
  return train.precision() == AUTO && !train.has_measured_precision();
}

Precision PrecisionOf(const TrainConfig& train) {
  return train.precision() == AUTO ? train.measured_precision().precision() : train.precision();
}

void KeepPrecision(const TrainConfig& run, TrainConfig* train) {
  if (!PrecisionIsOpen(*train) || PrecisionIsOpen(run)) return;
  if (run.precision() == AUTO) *train->mutable_measured_precision() = run.measured_precision();
  train->mutable_measured_precision()->set_precision(PrecisionOf(run));
}

const char* ShortName(Precision precision) { return precision == BFLOAT16 ? "bf16" : "f32"; }

std::string DescribeTakenPrecision(const TrainConfig& train) {
  if (PrecisionIsOpen(train)) {
    return "precision: f32, since AUTO has not been measured here yet (`train` and "
           "`time` do)";
  }
  return "precision: " + DescribeMeasured(train.measured_precision());
}

std::string DescribeRunPrecision(const TrainConfig& train, std::span<const LayerInfo> layers) {
  const std::string computes = DescribePrecision(layers);
  if (train.precision() != AUTO) return "precision: " + computes;
  const std::string taken = DescribeTakenPrecision(train);
  return PrecisionOf(train) == BFLOAT16 ? fmt::format("{}; {}", taken, computes) : taken;
}

}  // namespace ringtail
