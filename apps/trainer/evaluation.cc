#include "apps/trainer/evaluation.h"

#include <algorithm>
#include <cmath>

#include "apps/algorithm_choices.h"
#include "apps/memory_advice.h"
#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/round.h"
#include "core/stop_signal.h"

namespace ringtail {
namespace {

// An image that one view could not read is bad, even if another could.
void AddBad(const std::vector<BadImage>& found, std::vector<BadImage>* all) {
  for (const BadImage& bad : found) {
    if (std::none_of(all->begin(), all->end(),
                     [&](const BadImage& known) { return known.sample == bad.sample; })) {
      all->push_back(bad);
    }
  }
}

// The passes of a rank with `most_images` images that this one, with fewer, does not make itself.
void HelpOthers(Net* net, int64_t channels, int64_t images, const EvaluationOptions& evaluation) {
  const NetOptions& options = net->options();
  const int64_t passes =
      CeilDivide(evaluation.most_images, options.batch) - CeilDivide(images, options.batch);
  if (evaluation.shards == nullptr || passes <= 0) return;
  const std::vector<int32_t> no_labels(options.batch, -1);
  AlignedBuffer no_images(options.batch * channels * options.image_size * options.image_size *
                          sizeof(float));
  for (int64_t pass = 0; pass < passes; ++pass) {
    net->Forward({no_images.floats().data(), no_labels},
                 {.training = false, .shards = evaluation.shards});
  }
}

// Adds the logits of every image, seen in `mode`, to `sum`; half of them if it is seen twice.
Status AddView(Net* net, const Dataset& dataset, const std::vector<int64_t>& indices,
               const DataConfig& data, const EvaluationOptions& evaluation, LoaderMode mode,
               ImageLogits* sum) {
  const float scale = evaluation.flipped ? 0.5F : 1.0F;
  LoaderOptions options;
  options.mode = mode;
  options.batch = net->options().batch;
  options.image_size = net->options().image_size;
  for (const BadImage& bad : sum->bad) options.known_bad.push_back(bad.sample);
  RT_ASSIGN_OR_RETURN(const auto loader, DataLoader::Create(&dataset, indices, data, options));
  int64_t image = 0;
  while (true) {
    if (evaluation.stop_on_signal && StopSignal() != 0) return Cancelled("a signal asked to stop");
    RT_ASSIGN_OR_RETURN(const LoadedBatch batch, loader->Next());
    if (batch.labels.empty()) break;
    net->Forward({batch.images, batch.labels}, {.training = false, .shards = evaluation.shards});
    const std::span<const float> logits = net->logits();
    for (int64_t row = 0; row < options.batch && batch.samples[row] >= 0; ++row, ++image) {
      RT_CHECK(batch.samples[row] == indices[image], "the loader must keep the order of the list");
      for (int64_t k = 0; k < sum->classes; ++k) {
        sum->values[image * sum->classes + k] += scale * logits[row * sum->classes + k];
      }
    }
  }
  RT_CHECK(image == static_cast<int64_t>(indices.size()), "the loader must not leave images out");
  AddBad(loader->bad_images(), &sum->bad);
  return OkStatus();
}

void MarkBad(const std::vector<int64_t>& indices, ImageLogits* logits) {
  for (size_t i = 0; i < indices.size(); ++i) {
    logits->usable[i] = std::none_of(logits->bad.begin(), logits->bad.end(),
                                     [&](const BadImage& b) { return b.sample == indices[i]; });
  }
}

}  // namespace

EvaluationOptions EvaluationOptionsOf(const RunConfig& config, int64_t training_size) {
  return {.batch = EvaluationBatch(config),
          .image_size = EvaluationImageSize(config, training_size),
          .flipped = config.train().evaluate_flipped()};
}

EvaluationOptions EvaluationOptionsOf(const RunConfig& config) {
  return EvaluationOptionsOf(config, TrainingImageSizes(config).back());
}

StatusOr<std::unique_ptr<Net>> CreateEvaluationNet(Model* model, int64_t images,
                                                   const EvaluationOptions& options) {
  return AdviseOnMemory(
      Net::Create(model, {.batch = std::clamp<int64_t>(images, 1, options.batch),
                          .image_size = options.image_size,
                          .training = false,
                          .measure = images >= options.batch,
                          .algorithms = &ProgramAlgorithms()}),
      "a lower train.evaluation_batch, or smaller images (train.evaluation_image_size)");
}

StatusOr<ImageLogits> ComputeLogits(Model* model, const Dataset& dataset,
                                    const std::vector<int64_t>& indices, const DataConfig& data,
                                    const EvaluationOptions& options) {
  const auto images = static_cast<int64_t>(indices.size());
  const bool together = options.shards != nullptr;
  RT_ASSIGN_OR_RETURN(const auto net,
                      CreateEvaluationNet(model, together ? options.most_images : images, options));
  ImageLogits logits;
  logits.classes = model->num_classes();
  logits.values.assign(images * logits.classes, 0);
  logits.usable.assign(images, true);
  const auto add_view = [&](LoaderMode mode) -> Status {
    RT_RETURN_IF_ERROR(AddView(net.get(), dataset, indices, data, options, mode, &logits));
    HelpOthers(net.get(), model->input_channels(), images, options);
    return OkStatus();
  };
  RT_RETURN_IF_ERROR(add_view(LoaderMode::kEvaluate));
  if (options.flipped) RT_RETURN_IF_ERROR(add_view(LoaderMode::kEvaluateFlipped));
  MarkBad(indices, &logits);
  return logits;
}

EvaluationResult Score(const ImageLogits& logits, const Dataset& dataset,
                       const std::vector<int64_t>& indices) {
  EvaluationResult result;
  for (size_t i = 0; i < indices.size(); ++i) {
    const int32_t label = dataset.samples()[indices[i]].label;
    if (label < 0 || !logits.usable[i]) continue;
    const std::span<const float> row = logits.row(static_cast<int64_t>(i));
    result.loss_sum += NegativeLogLikelihood(row, label);
    result.correct += ArgMax(row) == label ? 1 : 0;
    ++result.images;
  }
  return result;
}

double NegativeLogLikelihood(std::span<const float> logits, int64_t label) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return std::log(sum) - (logits[label] - largest);
}

std::vector<double> Softmax(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(logits.size());
  double sum = 0;
  for (size_t k = 0; k < p.size(); ++k) sum += p[k] = std::exp(logits[k] - largest);
  for (double& value : p) value /= sum;
  return p;
}

int64_t ArgMax(std::span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace ringtail
