// The maps of Grad-CAM (activation_map.h) of a trained network.
//
// The network is run in evaluation mode and in f32, whatever precision it was trained in; images
// are cut from their centre, as for an evaluation, and not flipped.
// Thread-safety: the trainer thread only. Cost: a forward pass, and a backward pass from the logits
// to the feature map, which overwrites gradients in the model's arena.
#ifndef RINGTAIL_APPS_GRAD_CAM_GRAD_CAM_NET_H_
#define RINGTAIL_APPS_GRAD_CAM_GRAD_CAM_NET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/grad_cam/activation_map.h"
#include "apps/trainer/evaluation.h"
#include "core/status.h"
#include "data/data.pb.h"
#include "data/dataset.h"
#include "layers/net/model.h"
#include "layers/net/net.h"

namespace ringtail {

struct GradCamOptions {
  int64_t batch = 64;  // at most
  int64_t image_size = 128;
  std::string layer;  // whose output is the feature map; empty: the last (layers/net/feature_map.h)
};

// A net for `images` images. NotFound if the network has no feature map; InvalidArgument if the
// named layer has none.
StatusOr<std::unique_ptr<Net>> CreateGradCamNet(Model* model, int64_t images,
                                                const GradCamOptions& options);

// After an evaluating Forward of such a net: the map of row n for class classes[n] (0 .. classes -
// 1), one per row of the batch; -1 and rows beyond `classes`: an empty map.
std::vector<ActivationMap> GradCamOfBatch(Net* net, std::span<const int32_t> classes);

// The map of each image of `indices` for the class beside it; an empty one for class -1 and for
// images that cannot be read. Errors: those of the loader; Cancelled once a stop signal came.
StatusOr<std::vector<ActivationMap>> GradCamOfImages(Net* net, const Dataset& dataset,
                                                     const std::vector<int64_t>& indices,
                                                     std::span<const int32_t> classes,
                                                     const DataConfig& data);

// Without a cache, and with broken images skipped, however many.
DataConfig OnceReadable(DataConfig data);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_GRAD_CAM_GRAD_CAM_NET_H_
