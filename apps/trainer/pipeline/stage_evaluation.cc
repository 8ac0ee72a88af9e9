#include "apps/trainer/pipeline/stage_evaluation.h"

#include <memory>

#include "apps/trainer/update/batch_view.h"
#include "core/check.h"
#include "core/round.h"

namespace ringtail {
namespace {

// Adds what the last stage has of a batch: rows are images from `first` on, and padding.
void AddLogits(const Net& net, const StageBatch& batch, int64_t first, float scale,
               ImageLogits* sum) {
  const auto images = std::ssize(sum->usable);
  const std::span<const float> logits = net.logits();
  for (int64_t row = 0; row < std::ssize(batch.labels) && first + row < images; ++row) {
    if (batch.labels[row] < 0) sum->usable[first + row] = false;
    for (int64_t k = 0; k < sum->classes; ++k) {
      sum->values[(first + row) * sum->classes + k] += scale * logits[row * sum->classes + k];
    }
  }
}

}  // namespace

StatusOr<EvaluationResult> EvaluateStage(StageLink* link, Model* model, const Dataset& dataset,
                                         const std::vector<int64_t>& indices,
                                         const DataConfig& data, const EvaluationOptions& options) {
  const auto images = static_cast<int64_t>(indices.size());
  if (images == 0) return EvaluationResult();
  RT_ASSIGN_OR_RETURN(const auto net, CreateEvaluationNet(model, images, options));
  const int64_t rows = net->options().batch;
  const auto batches = static_cast<int>(CeilDivide(images, rows));
  StageMessages messages(link, net->boundaries(), rows);
  StageBatch batch;
  ImageLogits logits;
  logits.classes = model->num_classes();
  logits.values.assign(images * logits.classes, 0);
  logits.usable.assign(images, true);
  std::vector<LoaderMode> views = {LoaderMode::kEvaluate};
  if (options.flipped) views.push_back(LoaderMode::kEvaluateFlipped);
  for (const LoaderMode mode : views) {
    std::unique_ptr<DataLoader> loader;
    if (link->choice().is_first()) {
      LoaderOptions load;
      load.mode = mode;
      load.batch = rows;
      load.image_size = net->options().image_size;
      RT_ASSIGN_OR_RETURN(loader, DataLoader::Create(&dataset, indices, data, load));
    }
    messages.Expect(batches, 0);
    for (int i = 0; i < batches; ++i) {
      const StageOperation forward{PassKind::kForward, i};
      if (loader) {
        RT_ASSIGN_OR_RETURN(const LoadedBatch loaded, loader->Next());
        batch.Take(ViewOf(loaded));
      }
      RT_RETURN_IF_ERROR(messages.Before(forward, &batch));
      net->Forward(batch.View(), {.training = false, .boundary = &batch.boundary});
      messages.After(forward, batch);
      link->world()->progress()->Tick();
      const float scale = 1.0F / static_cast<float>(views.size());
      if (link->choice().is_last()) AddLogits(*net, batch, i * rows, scale, &logits);
    }
  }
  RT_RETURN_IF_ERROR(messages.Flush());
  if (!link->choice().is_last()) return EvaluationResult();
  return Score(logits, dataset, indices);
}

}  // namespace ringtail
