// A trained network as an ONNX file (operator set 9, IR version 4), for OpenCV's dnn, ONNX Runtime
// and whatever else reads ONNX.
//
//   images (N, 3, S, S) f32, R G B, 0 .. 255 -> normalize -> layers -> softmax -> probabilities (N, classes)
//
// The normalisation is the first node: a depthwise 1x1 convolution, because OpenCV 4.6 divides a
// batch of several images by constants of no other shape. The batch is free. What remains outside:
// the shorter side of an image is resized to S / crop_fraction, and the centre is cropped.
// Metadata: class_names (JSON), image_size, crop_fraction, mean, std, and ONNX's Image.* keys.
// An evaluation that averages an image and its mirror image (train.evaluate_flipped) is two passes;
// the file computes one.
// Thread-safety: functions without state. Cost: memory for two copies of the weights.
// Errors: InvalidArgument, with the layer, for what operator set 9 cannot express; networks above
// 2 GB, which protobuf cannot hold.
#ifndef RINGTAIL_APPS_EXPORT_ONNX_EXPORT_H_
#define RINGTAIL_APPS_EXPORT_ONNX_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/model_file.h"
#include "core/status.h"

namespace ringtail {

// The bytes of the file. `image_size`: S, pixels.
StatusOr<std::string> OnnxModel(const TrainedModel& trained, int64_t image_size);

// What to type to use the file from OpenCV, in Python and in C++. `class_names`: in the order of
// probabilities.
std::string OnnxUsage(const std::string& path, const DataConfig& data, int64_t image_size,
                      const std::vector<std::string>& class_names);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EXPORT_ONNX_EXPORT_H_
