// Evaluation: the logits of a trained network for images, and their score against the labels.
//
// Each image is cut from its centre (data/loader.h kEvaluate); with `flipped` the logits are the
// mean over the image and its mirror image. Counts are exact: each image counts once, whatever
// the batch; images that cannot be decoded do not count and are named.
// Loss: the mean of -log p[label] (natural logarithm), without the label smoothing of training, so
// that runs are comparable. Thread-safety: the trainer thread only. Errors: those of the loader;
// Cancelled once a stop signal came, if that is asked for. Cost: one forward pass per view, in the
// memory of an inference net, which is freed afterwards.
#ifndef RINGTAIL_APPS_TRAINER_EVALUATION_H_
#define RINGTAIL_APPS_TRAINER_EVALUATION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/config/run_config.h"
#include "core/status.h"
#include "data/loader.h"
#include "layers/linear/shard_exchange.h"
#include "layers/net/model.h"
#include "layers/net/net.h"

namespace ringtail {

struct EvaluationOptions {
  int64_t batch = 64;
  int64_t image_size = 128;
  bool flipped = false;
  bool stop_on_signal = true;  // false if other ranks would continue
  // Of a model whose layers ranks divide: all of them make as many passes, as for `most_images`, the
  // most that one of them has.
  ShardExchange* shards = nullptr;
  int64_t most_images = 0;
};
// The options that the config asks for while training images have `training_size`; without a size,
// at the end of training.
EvaluationOptions EvaluationOptionsOf(const RunConfig& config, int64_t training_size);
EvaluationOptions EvaluationOptionsOf(const RunConfig& config);

struct ImageLogits {
  int64_t classes = 0;
  std::vector<float> values;  // (images, classes), row-major
  std::vector<bool> usable;   // per image
  std::vector<BadImage> bad;  // the others, with reasons

  std::span<const float> row(int64_t i) const {
    return {values.data() + i * classes, static_cast<size_t>(classes)};
  }
};

// The net that ComputeLogits uses for `images` images.
StatusOr<std::unique_ptr<Net>> CreateEvaluationNet(Model* model, int64_t images,
                                                   const EvaluationOptions& options);

// One row of logits per entry of `indices`.
StatusOr<ImageLogits> ComputeLogits(Model* model, const Dataset& dataset,
                                    const std::vector<int64_t>& indices, const DataConfig& data,
                                    const EvaluationOptions& options);

struct EvaluationResult {
  double loss_sum = 0;
  int64_t correct = 0, images = 0;

  double loss() const { return loss_sum / count(); }
  double accuracy() const { return static_cast<double>(correct) / count(); }

 private:
  double count() const { return static_cast<double>(images > 0 ? images : 1); }
};

// Labels of `indices` in `dataset`; unlabelled images do not count.
EvaluationResult Score(const ImageLogits& logits, const Dataset& dataset,
                       const std::vector<int64_t>& indices);

// -log p[label], also where p itself is too small for a double.
double NegativeLogLikelihood(std::span<const float> logits, int64_t label);
// exp(logit_k) / sum over j of exp(logit_j)
std::vector<double> Softmax(std::span<const float> logits);
int64_t ArgMax(std::span<const float> values);  // the first of the largest

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_EVALUATION_H_
