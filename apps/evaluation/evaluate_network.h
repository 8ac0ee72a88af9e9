// Lets a trained network score the images of a data set, or of one part of it.
// Thread-safety: the trainer thread only. Cost: one forward pass per image and view.
// Errors: those of reading images; InvalidArgument if none counts or the classes are not those of
// the network; Cancelled after a stop signal.
#ifndef RINGTAIL_APPS_EVALUATION_EVALUATE_NETWORK_H_
#define RINGTAIL_APPS_EVALUATION_EVALUATE_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/evaluation/scored_images.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "core/status.h"
#include "data/bad_images.h"
#include "data/dataset.h"

namespace ringtail {

// "validation" of the data set that the network was trained on: the network has seen the others,
// which would flatter it. "all" of any other data set.
std::string DefaultPart(const TrainedModel& trained);

// Indices into `dataset`; `part`: "all", "train" or "validation".
StatusOr<std::vector<int64_t>> ImagesOfPart(const std::string& part, const Dataset& dataset,
                                            const SplitConfig& split);

struct NetworkEvaluation {
  std::unique_ptr<Dataset> dataset;
  std::string part;
  ScoredImages scored;
  std::vector<BadImage> bad;
  double images_per_s = 0;
};
// `part`: empty for DefaultPart. The images are those of the config in `trained`.
StatusOr<NetworkEvaluation> EvaluateNetwork(const TrainedModel& trained, std::string part);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EVALUATION_EVALUATE_NETWORK_H_
