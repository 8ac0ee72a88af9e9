// The precision of a run (train.precision): which one that is once AUTO was decided, and how to say
// it. What AUTO takes is kept in the run's config and its checkpoints (train.measured_precision);
// apps/trainer/decide_precision.h measures it.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_CONFIG_RUN_PRECISION_H_
#define RINGTAIL_APPS_CONFIG_RUN_PRECISION_H_

#include <span>
#include <string>

#include "apps/run.pb.h"
#include "layers/net/net.h"

namespace ringtail {

// How many times as fast bf16 must be for AUTO to take it: less is not worth its roundings, and may
// be chance.
inline constexpr double kLeastBf16Gain = 1.03;

// AUTO, and nothing was taken yet.
bool PrecisionIsOpen(const TrainConfig& train);
// FLOAT32 or BFLOAT16; FLOAT32 while it is open: of nets of which only shapes and costs count.
Precision PrecisionOf(const TrainConfig& train);

// An open AUTO takes what `run`, which is decided, was trained in. No effect on others.
void KeepPrecision(const TrainConfig& run, TrainConfig* train);

// "f32" or "bf16".
const char* ShortName(Precision precision);

// One sentence: which precision, for AUTO also why and what it gains, and on what a net with these
// layers computes.
//   precision: bf16, measured 1.27 times as fast as f32 (71.2 against 90.4 ms for 64 images of 96
//   pixels, forward and backward); bfloat16 outputs of 41 of 44 layers; ...
std::string DescribeRunPrecision(const TrainConfig& train, std::span<const LayerInfo> layers);
// Of AUTO: what comes before the first semicolon of that.
std::string DescribeTakenPrecision(const TrainConfig& train);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_CONFIG_RUN_PRECISION_H_
