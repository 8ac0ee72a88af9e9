// dogs_vs_cats predict: the classes of images by a trained network.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/image_files.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/prediction_table.h"
#include "apps/dogs_vs_cats/trained_network.h"
#include "apps/exit_code.h"
#include "apps/grad_cam/overlay_files.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "core/logging.h"
#include "core/storage/file.h"
#include "core/text/counted.h"

namespace ringtail {
namespace {

struct PredictFlags {
  NetworkFlags network;
  std::string csv, grad_cam, grad_cam_layer;
  std::vector<std::string> images, more_images;
  bool submission = false, json = false;
};

StatusOr<std::string> Text(const PredictFlags& flags, const Dataset& dataset,
                           const ImageLogits& logits, const std::vector<std::string>& class_names) {
  if (flags.submission) return SubmissionCsv(dataset, logits);
  if (flags.json) return PredictionJson(dataset, logits, class_names);
  return flags.csv.empty() ? PredictionTable(dataset, logits, class_names)
                           : PredictionCsv(dataset, logits, class_names);
}

StatusOr<std::vector<std::string>> ImagesOf(const PredictFlags& flags) {
  std::vector<std::string> images = flags.images;
  images.insert(images.end(), flags.more_images.begin(), flags.more_images.end());
  if (images.empty()) {
    return InvalidArgument(
        "predict needs images, or folders of them, as in `predict --checkpoint runs/first "
        "cat.jpg`");
  }
  return images;
}

// Writes what spoke for the class that each image was taken for.
Status WriteMaps(const PredictFlags& flags, const TrainedModel& trained, const Dataset& dataset,
                 const ImageLogits& logits, const DataConfig& data) {
  std::vector<int32_t> classes;
  for (size_t i = 0; i < logits.usable.size(); ++i) {
    const std::span<const float> row = logits.row(static_cast<int64_t>(i));
    classes.push_back(logits.usable[i] ? static_cast<int32_t>(ArgMax(row)) : -1);
  }
  const EvaluationOptions evaluation = EvaluationOptionsOf(trained.loaded.config);
  return WriteGradCamFiles(trained.model.get(), dataset, classes, trained.class_names, data,
                           {.batch = evaluation.batch,
                            .image_size = evaluation.image_size,
                            .layer = flags.grad_cam_layer},
                           flags.grad_cam)
      .Annotate("--grad-cam");
}

// `csv`: as OutputPath gives it.
Status Say(const PredictFlags& flags, const std::string& csv, const std::string& text,
           const ImageLogits& logits) {
  if (csv.empty()) {
    Print("{}", text);
    return OkStatus();
  }
  RT_RETURN_IF_ERROR(WriteFileAtomic(csv, text));
  if (csv != flags.csv) return OkStatus();  // to standard output
  const auto known = std::count(logits.usable.begin(), logits.usable.end(), true);
  Print("{} in {}", Counted(known, "prediction"), csv);
  if (flags.submission && !logits.bad.empty()) {
    Print(", and 0.5 for {} that could not be read", Counted(std::ssize(logits.bad), "image"));
  }
  Print("\n");
  return OkStatus();
}

StatusOr<int> RunPredict(const PredictFlags& flags) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> images, ImagesOf(flags));
  RT_ASSIGN_OR_RETURN(const std::string csv, OutputPath(flags.csv));
  RT_ASSIGN_OR_RETURN(const TrainedModel trained, ReadNetwork(flags.network));
  const RunConfig& config = trained.loaded.config;
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads, UseThreads(flags.network.config, config));
  RT_ASSIGN_OR_RETURN(const auto dataset,
                      OpenImageFiles(images, config.data().bad_images().max_file_mib()));
  DataConfig data = config.data();
  data.mutable_bad_images()->set_policy(BadImagesConfig::SKIP);
  data.mutable_bad_images()->set_max_fraction(1);  // the loader logs each one
  std::vector<int64_t> all(dataset->samples().size());
  std::iota(all.begin(), all.end(), 0);
  RT_ASSIGN_OR_RETURN(const ImageLogits logits, ComputeLogits(trained.model.get(), *dataset, all,
                                                              data, EvaluationOptionsOf(config)));
  if (!logits.bad.empty()) {
    LogWarning(fmt::format("{} of {} could not be read", logits.bad.size(),
                           Counted(std::ssize(all), "image")));
  }
  RT_ASSIGN_OR_RETURN(const std::string text, Text(flags, *dataset, logits, trained.class_names));
  RT_RETURN_IF_ERROR(Say(flags, csv, text, logits));
  if (!flags.grad_cam.empty()) {
    RT_RETURN_IF_ERROR(WriteMaps(flags, trained, *dataset, logits, data));
  }
  return kExitSuccess;
}

}  // namespace

void AddPredictCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* verb = app->add_subcommand("predict", "Say what is in images");
  AddNetworkFlags(verb, &flags->network);
  verb->add_option("IMAGES", flags->images,
                   "Images (JPEG, PNG, BMP, WebP, TIFF), or folders of them")
      ->type_name("PATH");
  verb->add_option("--images", flags->more_images, "More IMAGES")->type_name("PATH");
  CLI::Option* const csv =
      verb->add_option(
              "--csv", flags->csv,
              "Write key,label,probability instead of printing a table; - is standard output")
          ->type_name("FILE");
  CLI::Option* const submission =
      verb->add_flag("--submission", flags->submission,
                     "Kaggle's id,label instead: the number in the name, the probability of a dog");
  verb->add_flag("--json", flags->json,
                 "Print JSON: file, label, and the probability of every class")
      ->excludes(submission)
      ->excludes(csv);
  CLI::Option* const grad_cam =
      verb->add_option("--grad-cam", flags->grad_cam,
                       "Write each image into this folder, coloured by what in it spoke for its "
                       "class (Grad-CAM), and the maps as grad_cam.csv")
          ->type_name("DIR");
  verb->add_option("--grad-cam-layer", flags->grad_cam_layer,
                   "Layer whose output the maps are of (default: the last before pooling)")
      ->type_name("NAME")
      ->needs(grad_cam);
  verb->footer(Examples({"predict --checkpoint runs/first cat.jpg ~/unsorted",
                         "predict --checkpoint runs/first cat.jpg --json",
                         "predict --checkpoint runs/first cat.jpg dog.jpg --grad-cam maps",
                         "predict --checkpoint runs/first --images ~/dogs-vs-cats/test1 "
                         "--submission --csv submission.csv"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunPredict(*flags); }; });
}

}  // namespace ringtail
