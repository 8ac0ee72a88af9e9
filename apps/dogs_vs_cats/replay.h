// Repeats training steps on one given batch, to be compared with another framework number for
// number.
//
// K times on the same batch: forward, backward, clipping, optimizer step at the constant rate
// optim.learning_rate. No augmentation, no shuffling, no schedule; dropout and DropConnect are off,
// because the random numbers of two frameworks differ; batch norm uses batch statistics, as in
// training. An AUTO precision is decided for this batch (apps/trainer/decide_precision.h).
//
//   in   batch     images f32 (N, C, S, S), already normalised; labels i32 (N)
//        weights   every parameter by name; optionally running statistics. Without it, the
//                  config's initial ones: train.weights, if set, else drawn. train.freeze holds
//   out  loss f32 (K): mean over the batch; logits f32 (N, classes) of the first step;
//        grad.<parameter>: of the mean loss of the first step, before clipping;
//        param.<parameter or buffer>: after the last step; without weights, init.<...>: before
//        with `grad_cam`, of the network before the first step, in evaluation mode and f32:
//        grad_cam.logits f32 (N, classes); grad_cam.activations and grad_cam.gradients f32
//        (N, C, H, W): the last feature map, and the gradient of each image's largest logit with
//        respect to it; grad_cam.maps f32 (N, H, W): apps/grad_cam/activation_map.h
//
// Thread-safety: the trainer thread only. Errors name the tensor and the file.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_REPLAY_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_REPLAY_H_

#include <string>

#include "apps/config/run_config.h"
#include "core/status.h"

namespace ringtail {

struct ReplayOptions {
  std::string weights;  // empty: the config's initial ones
  std::string batch, out;
  int steps = 1;
  bool grad_cam = false;
};

Status Replay(LoadedConfig loaded, const ReplayOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_REPLAY_H_
