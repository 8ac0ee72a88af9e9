// The time of a training step of a network, as a whole and layer by layer.
//
// A step is forward, backward and optimizer (its rule and weight decay) for a batch in memory.
// Images and labels are random. Whole steps are timed first and layers separately afterwards, so
// that reading the clock does not disturb the steps.
// Thread-safety: the trainer thread only. Errors: those of the config and the net.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_NET_TIMING_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_NET_TIMING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/status.h"
#include "layers/net/net.h"

namespace ringtail {

struct TimingOptions {
  int64_t batch = 32;
  int64_t image_size = 128;
  int64_t iterations = 10;  // timed steps, after kWarmUpSteps
};

struct LayerTiming {
  LayerInfo info;
  double forward_ms = 0,
         backward_ms = 0;  // medians; no backward in layers before the first parameter
  double forward_gflop_per_s = 0, backward_gflop_per_s = 0;
  double share = 0;  // of the sum over all layers
};

struct NetTiming {
  double step_ms = 0, fastest_step_ms = 0, slowest_step_ms = 0;  // step_ms: median
  double images_per_s = 0;
  double gflop_per_s = 0;         // convolutions and linear layers, forward and backward
  double peak_memory_mib = 0;     // of the process
  double planned_memory_mib = 0;  // activations, gradients of activations, state, scratch
  int64_t parameters = 0;
  std::string precision;  // a sentence (DescribeRunPrecision)
  std::vector<LayerTiming> layers;
};

StatusOr<NetTiming> TimeNet(const LoadedConfig& loaded, const TimingOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_NET_TIMING_H_
