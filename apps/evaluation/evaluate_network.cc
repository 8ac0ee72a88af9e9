#include "apps/evaluation/evaluate_network.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <numeric>
#include <utility>

#include "apps/trainer/evaluation.h"
#include "core/stopwatch.h"
#include "data/split.h"

namespace ringtail {
namespace {

// InvalidArgument if no image of the part counts: those without a label and broken ones do not.
Status CheckCounted(int64_t counted, const std::string& path, const std::string& part,
                    int64_t images, size_t bad) {
  if (counted > 0) return OkStatus();
  if (images == 0) {
    return InvalidArgument(fmt::format(
        "{}: no images in the part '{}' (data.split); ask for another --part, or --data", path,
        part));
  }
  return InvalidArgument(
      fmt::format("{}: none of the {} images in the part '{}' counts: {} cannot be used, the "
                  "others have no label; name them cat.N.jpg and dog.N.jpg, or sort them into one "
                  "folder per class",
                  path, images, part, bad));
}

Status CheckSameClasses(const TrainedModel& trained, const Dataset& dataset) {
  if (dataset.class_names() == trained.class_names) {
    if (trained.model->num_classes() >= std::ssize(trained.class_names)) return OkStatus();
    return InvalidArgument(fmt::format("the network has {} outputs for {} classes",
                                       trained.model->num_classes(), trained.class_names.size()));
  }
  return InvalidArgument(
      fmt::format("the images are of the classes {}, the network was trained on {}",
                  fmt::join(dataset.class_names(), ", "), fmt::join(trained.class_names, ", ")));
}

}  // namespace

std::string DefaultPart(const TrainedModel& trained) {
  const std::string& path = trained.loaded.config.data().path();
  std::error_code ignored;
  const bool own =
      path == trained.data_path || std::filesystem::equivalent(path, trained.data_path, ignored);
  return own ? "validation" : "all";
}

StatusOr<std::vector<int64_t>> ImagesOfPart(const std::string& part, const Dataset& dataset,
                                            const SplitConfig& split) {
  if (part == "all") {
    std::vector<int64_t> all(dataset.samples().size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  RT_ASSIGN_OR_RETURN(Split parts, SplitDataset(split, dataset.samples()));
  return part == "train" ? std::move(parts.train) : std::move(parts.validation);
}

StatusOr<NetworkEvaluation> EvaluateNetwork(const TrainedModel& trained, std::string part) {
  const RunConfig& config = trained.loaded.config;
  NetworkEvaluation evaluation;
  RT_ASSIGN_OR_RETURN(evaluation.dataset, Dataset::Open(config.data()));
  RT_RETURN_IF_ERROR(CheckSameClasses(trained, *evaluation.dataset));
  evaluation.part = part.empty() ? DefaultPart(trained) : std::move(part);
  RT_ASSIGN_OR_RETURN(const auto images,
                      ImagesOfPart(evaluation.part, *evaluation.dataset, config.data().split()));
  const Stopwatch watch;
  RT_ASSIGN_OR_RETURN(ImageLogits logits,
                      ComputeLogits(trained.model.get(), *evaluation.dataset, images, config.data(),
                                    EvaluationOptionsOf(config)));
  const double seconds = watch.Seconds();
  evaluation.scored = MakeScoredImages(logits, *evaluation.dataset, images);
  RT_RETURN_IF_ERROR(CheckCounted(evaluation.scored.images(), config.data().path(), evaluation.part,
                                  std::ssize(images), logits.bad.size()));
  evaluation.images_per_s = static_cast<double>(evaluation.scored.images()) / seconds;
  evaluation.bad = std::move(logits.bad);
  return evaluation;
}

}  // namespace ringtail
