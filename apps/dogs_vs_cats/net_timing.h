// How long a training step of a network takes, as a whole and layer by layer.
//
// A step is what training does with a batch that is in memory: forward, backward, optimizer (its
// rule, its weight decay). Images and labels are random. First whole steps are timed without
// looking inside; then, apart from them, the layers, so that the clock does not disturb the step.
// Thread-safety: the trainer thread only. Errors: what the config or the net says.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_NET_TIMING_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_NET_TIMING_H_

#include <cstdint>
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
  double forward_ms = 0, backward_ms = 0;  // medians; 0 backward where nothing learns
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
  std::vector<LayerTiming> layers;
};

StatusOr<NetTiming> TimeNet(const LoadedConfig& loaded, const TimingOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_NET_TIMING_H_
