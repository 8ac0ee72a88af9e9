#include "apps/report/write_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "apps/evaluation/evaluate_network.h"
#include "apps/grad_cam/grad_cam_net.h"
#include "apps/report/results_table.h"
#include "apps/report/run_report.h"
#include "apps/report/stored_evaluation.h"
#include "apps/report/tensorboard_events.h"
#include "apps/report/thumbnails.h"
#include "apps/trainer/checkpoint/run_directory.h"
#include "apps/version.h"
#include "core/config/text_config.h"
#include "core/storage/file.h"
#include "core/text/counted.h"
#include "data/split.h"

namespace ringtail {
namespace {

constexpr size_t kMostMistakes = 24, kMostGuesses = 12;
constexpr int64_t kTrainingImages = 16;

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

StatusOr<StoredEvaluation> Evaluate(const ReportRequest& request, const TrainedModel& trained) {
  RT_ASSIGN_OR_RETURN(const std::string crc, FileCrc32c(request.network));
  if (!request.changed) {
    if (auto known = FindEvaluation(request.run_folder, crc)) return *std::move(known);
  }
  RT_ASSIGN_OR_RETURN(NetworkEvaluation now, EvaluateNetwork(trained, ""));
  StoredEvaluation evaluation{.network = FileName(request.network),
                              .network_crc32c = crc,
                              .part = now.part,
                              .scored = std::move(now.scored),
                              .bad_images = std::ssize(now.bad),
                              .images_per_s = now.images_per_s};
  if (!request.changed) RT_RETURN_IF_ERROR(StoreEvaluation(request.run_folder, evaluation));
  return evaluation;
}

ReportImage ImageOfRow(const ScoredImages& scored, int64_t i) {
  const bool right = scored.labels[i] == scored.predicted[i];
  return {.file = scored.files[i],
          .label = scored.class_names[scored.labels[i]],
          .taken_for = right ? "" : scored.class_names[scored.predicted[i]],
          .confidence = scored.confidence(i),
          .jpeg = {}};
}

// Rows of `scored`: the mistakes of largest loss, or the right guesses of smallest loss.
std::vector<int64_t> Extremes(const ScoredImages& scored, bool mistakes, size_t most) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < scored.images(); ++i) {
    if ((scored.labels[i] != scored.predicted[i]) == mistakes) rows.push_back(i);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) {
    return mistakes ? scored.losses[a] > scored.losses[b] : scored.losses[a] < scored.losses[b];
  });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

std::string OverlayText(const std::string& predicted, const ActivationMap& map) {
  const std::string strongest = Strongest(map);
  if (strongest.empty())
    return fmt::format("Grad-CAM: no part of the image spoke for {}", predicted);
  return fmt::format("Grad-CAM: what spoke most for {} is at {} of the image", predicted,
                     strongest);
}

// An image that the data set does not have any more has no thumbnail, and without `net` none has a
// map.
StatusOr<std::vector<ReportImage>> ImagesOfRows(const ScoredImages& scored,
                                                const std::vector<int64_t>& rows,
                                                const Dataset& dataset, const DataConfig& config,
                                                Net* net) {
  std::unordered_map<std::string, int64_t> sample_of;
  for (size_t i = 0; i < dataset.samples().size(); ++i) {
    sample_of[dataset.samples()[i].key] = static_cast<int64_t>(i);
  }
  std::vector<ReportImage> images;
  std::vector<int64_t> samples;
  std::vector<int32_t> predicted;
  for (const int64_t row : rows) {
    images.push_back(ImageOfRow(scored, row));
    const auto found = sample_of.find(scored.files[row]);
    if (found == sample_of.end()) continue;
    samples.push_back(found->second);
    predicted.push_back(scored.predicted[row]);
  }
  std::vector<ActivationMap> maps(samples.size());
  if (net != nullptr) {
    RT_ASSIGN_OR_RETURN(maps, GradCamOfImages(net, dataset, samples, predicted, config));
  }
  RT_ASSIGN_OR_RETURN(std::vector<Thumbnail> thumbnails,
                      ImageThumbnails(dataset, samples, config, maps));
  size_t next = 0;
  for (ReportImage& image : images) {
    if (next == samples.size() || dataset.samples()[samples[next]].key != image.file) continue;
    image.jpeg = std::move(thumbnails[next].jpeg);
    image.overlay_jpeg = std::move(thumbnails[next].overlay_jpeg);
    image.overlay_text = OverlayText(scored.class_names[predicted[next]], maps[next]);
    ++next;
  }
  return images;
}

StatusOr<std::vector<ReportImage>> TrainingImages(const Dataset& dataset, const Split& split,
                                                  const RunConfig& config) {
  RT_ASSIGN_OR_RETURN(std::vector<Thumbnail> thumbnails,
                      TrainingThumbnails(dataset, split.train, kTrainingImages,
                                         config.train().seed(), config.data()));
  std::vector<ReportImage> images;
  for (Thumbnail& thumbnail : thumbnails) {
    const Sample& sample = dataset.samples()[thumbnail.sample];
    const std::string label = sample.label >= 0 ? dataset.class_names()[sample.label] : "no label";
    images.push_back({.file = sample.key, .label = label, .jpeg = std::move(thumbnail.jpeg)});
  }
  return images;
}

void DescribeData(const Dataset& dataset, const Split& split, const RunConfig& config,
                  RunReport* report) {
  report->data.emplace_back("images", dataset.Describe());
  report->data.emplace_back("training", Counted(std::ssize(split.train), "image"));
  report->data.emplace_back("validation", Counted(std::ssize(split.validation), "image"));
  report->data.emplace_back("image size",
                            fmt::format("{0} x {0} pixels", config.data().image_size()));
  if (report->evaluation && report->evaluation->bad_images > 0) {
    report->data.emplace_back("could not be read",
                              Counted(report->evaluation->bad_images, "image"));
  }
}

// The mistakes and guesses with Grad-CAM, if the network has a feature map.
Status AddExtremes(const Dataset& dataset, const TrainedModel& trained,
                   ReportEvaluation* evaluation) {
  const RunConfig& config = trained.loaded.config;
  const EvaluationOptions options = EvaluationOptionsOf(config);
  auto net = CreateGradCamNet(trained.model.get(), kMostMistakes,
                              {.batch = options.batch, .image_size = options.image_size});
  if (net.ok()) {
    evaluation->feature_map = (*net)->feature_map().layer;
  } else if (net.status().code() != StatusCode::kNotFound) {
    return net.status();
  }
  const auto images_of = [&](bool mistakes, size_t most) {
    const ScoredImages& scored = evaluation->scored;
    return ImagesOfRows(scored, Extremes(scored, mistakes, most), dataset, config.data(),
                        net.ok() ? net->get() : nullptr);
  };
  RT_ASSIGN_OR_RETURN(evaluation->worst, images_of(true, kMostMistakes));
  RT_ASSIGN_OR_RETURN(evaluation->best, images_of(false, kMostGuesses));
  return OkStatus();
}

Status AddImages(const Dataset& dataset, const Split& split, const TrainedModel& trained,
                 RunReport* report) {
  if (report->evaluation) {
    RT_RETURN_IF_ERROR(AddExtremes(dataset, trained, &*report->evaluation));
  }
  RT_ASSIGN_OR_RETURN(report->training_images,
                      TrainingImages(dataset, split, trained.loaded.config));
  return OkStatus();
}

// What needs the data set.
Status AddData(const ReportRequest& request, const TrainedModel& trained, RunReport* report) {
  const RunConfig& config = trained.loaded.config;
  const auto dataset = Dataset::Open(config.data());
  if (!dataset.ok()) {
    if (request.images) {
      return dataset.status().Annotate("the images of the report (--data, or --no-images)");
    }
    report->data.emplace_back("images",
                              fmt::format("not there any more: {}", config.data().path()));
    return OkStatus();
  }
  // Without labels there is no split, and with ranges that leave a part empty neither.
  const auto split = SplitDataset(config.data().split(), (*dataset)->samples());
  const Split parts = split.ok() ? *split : Split{};
  DescribeData(**dataset, parts, config, report);
  return request.images ? AddImages(**dataset, parts, trained, report) : OkStatus();
}

Status WriteCurves(const std::string& run_folder, const RunHistory& history) {
  RT_RETURN_IF_ERROR(WriteFileAtomic(run_folder + "/" + kResultsName, ResultsCsv(history)));
  return WriteEventFiles(run_folder + "/" + kTensorboardFolder, history);
}

}  // namespace

Status WriteReport(const ReportRequest& request, const TrainedModel& trained) {
  const RunConfig& config = trained.loaded.config;
  RunReport report;
  report.name = FileName(std::filesystem::absolute(request.run_folder).lexically_normal().string());
  if (report.name.empty()) {  // "runs/first/"
    report.name = std::filesystem::absolute(request.run_folder)
                      .lexically_normal()
                      .parent_path()
                      .filename()
                      .string();
  }
  RT_ASSIGN_OR_RETURN(report.history, ReadRunHistory(request.run_folder + "/metrics.jsonl"));
  RT_RETURN_IF_ERROR(WriteCurves(request.run_folder, report.history));
  // A run that validates on nothing has nothing to evaluate, except on other images.
  if (request.changed || !report.history.evaluation.empty()) {
    RT_ASSIGN_OR_RETURN(StoredEvaluation evaluation, Evaluate(request, trained));
    report.evaluation = {.network = evaluation.network,
                         .part = evaluation.part,
                         .scored = std::move(evaluation.scored),
                         .bad_images = evaluation.bad_images,
                         .worst = {},
                         .best = {}};
  }
  RT_RETURN_IF_ERROR(AddData(request, trained, &report));
  report.config = PrintTextConfig(config);
  report.versions = VersionLine();
  return WriteFileAtomic(request.out, RenderReport(report));
}

Status WriteReportOfRun(const std::string& run_folder) {
  const std::string network = run_folder + "/" + kFinalName;
  RT_ASSIGN_OR_RETURN(const TrainedModel trained, ReadModelFile(network, {}));
  return WriteReport(
      {.run_folder = run_folder, .network = network, .out = run_folder + "/" + kReportName},
      trained);
}

}  // namespace ringtail
