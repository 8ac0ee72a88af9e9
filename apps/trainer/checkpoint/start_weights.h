// A warm start: the weights that a new run begins with, from a file that somebody else has trained,
// or from another run (train.weights).
//
//   torchvision, timm   safetensors or .pth; names are torchvision's, as the shipped networks have
//                       them (timm_names.h where timm's differ); the prefixes module., _orig_mod.
//                       and model. are left out where all names have them; num_batches_tracked is
//                       not asked for
//   Ringtail            a run's folder, its final network or a checkpoint; averaged weights if it
//                       has some
//
// Weights are matched by name, never by order or shape: safetensors files are sorted by name, and
// in a ResNet many shapes are equal. Every weight and running statistic of the network must be in
// the file, with its shape, and the file must have no others. Only the last layer with weights may
// differ: then all of it starts anew, as it does if the classes of another run are not those of the
// images. Errors: InvalidArgument with the names and both shapes; DataLoss for a NaN or infinity;
// those of reading. After an error the weights must be thrown away. Thread-safety: the trainer
// thread.
#ifndef RINGTAIL_APPS_TRAINER_CHECKPOINT_START_WEIGHTS_H_
#define RINGTAIL_APPS_TRAINER_CHECKPOINT_START_WEIGHTS_H_

#include <string>
#include <vector>

#include "core/status.h"
#include "layers/net/model.h"

namespace ringtail {

// Overwrites what `path` has; the rest stays as it was initialised. Returns what was taken and what
// is new: "resnet18.safetensors: 100 of 102 tensors taken (11.2 of 11.2 M weights); new: fc.weight
// 5x512 (file: 1000x512), fc.bias 5 (file: 1000)". `class_names`: of the images.
StatusOr<std::string> LoadStartWeights(const std::string& path,
                                       const std::vector<std::string>& class_names, Model* model);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_CHECKPOINT_START_WEIGHTS_H_
