// dogs_vs_cats evaluate: how well a trained network does on labelled images.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/trained_network.h"
#include "apps/exit_code.h"
#include "apps/print.h"
#include "apps/trainer/evaluation.h"
#include "core/stopwatch.h"
#include "data/split.h"

namespace ringtail {
namespace {

struct EvaluateFlags {
  NetworkFlags network;
  std::string data;
  std::string part;  // empty: DefaultPart
  bool json = false;
};

// The network was trained on nine in ten images of its own run, which would flatter it.
std::string DefaultPart(const TrainedModel& trained) {
  const std::string& path = trained.loaded.config.data().path();
  std::error_code ignored;
  const bool own =
      path == trained.data_path || std::filesystem::equivalent(path, trained.data_path, ignored);
  return own ? "validation" : "all";
}

// Which images of the data set count.
StatusOr<std::vector<int64_t>> ChosenImages(const std::string& part, const Dataset& dataset,
                                            const SplitConfig& split) {
  if (part == "all") {
    std::vector<int64_t> all(dataset.samples().size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  RT_ASSIGN_OR_RETURN(Split parts, SplitDataset(split, dataset.samples()));
  return part == "train" ? std::move(parts.train) : std::move(parts.validation);
}

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
  if (dataset.class_names() == trained.class_names) return OkStatus();
  return InvalidArgument(
      fmt::format("the images are of the classes {}, the network was trained on {}",
                  fmt::join(dataset.class_names(), ", "), fmt::join(trained.class_names, ", ")));
}

StatusOr<int> RunEvaluate(EvaluateFlags flags) {
  if (!flags.data.empty()) {
    flags.network.config.SetString("data.path", flags.data);
    flags.network.config.set.push_back("data.layout=AUTO");
  }
  RT_ASSIGN_OR_RETURN(const TrainedModel trained, ReadNetwork(flags.network));
  const RunConfig& config = trained.loaded.config;
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads, UseThreads(flags.network.config, config));
  RT_ASSIGN_OR_RETURN(const auto dataset, Dataset::Open(config.data()));
  RT_RETURN_IF_ERROR(CheckSameClasses(trained, *dataset));
  const std::string part = flags.part.empty() ? DefaultPart(trained) : flags.part;
  RT_ASSIGN_OR_RETURN(const auto images, ChosenImages(part, *dataset, config.data().split()));
  const Stopwatch watch;
  RT_ASSIGN_OR_RETURN(const ImageLogits logits,
                      ComputeLogits(trained.model.get(), *dataset, images, config.data(),
                                    EvaluationOptionsOf(config)));
  const double seconds = watch.Seconds();
  const EvaluationResult result = Score(logits, *dataset, images);
  RT_RETURN_IF_ERROR(CheckCounted(result.images, config.data().path(), part, std::ssize(images),
                                  logits.bad.size()));
  const double images_per_s = static_cast<double>(result.images) / seconds;
  if (flags.json) {
    std::cout << nlohmann::ordered_json({{"accuracy", result.accuracy()},
                                         {"loss", result.loss()},
                                         {"part", part},
                                         {"images", result.images},
                                         {"correct", result.correct},
                                         {"bad_images", logits.bad.size()},
                                         {"images_per_s", images_per_s}})
                     .dump()
              << '\n';
  } else {
    Print("accuracy {:.2f} % ({} of {} images, {}), loss {:.4f}, {:.0f} images/s\n",
          100 * result.accuracy(), result.correct, result.images, part, result.loss(),
          images_per_s);
  }
  return kExitSuccess;
}

}  // namespace

void AddEvaluateCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<EvaluateFlags>();
  CLI::App* verb = app->add_subcommand("evaluate", "Measure a trained network on images");
  AddNetworkFlags(verb, &flags->network);
  verb->add_option("--data", flags->data, "Labelled images (default: those of the training run)")
      ->type_name("PATH");
  verb->add_option("--part", flags->part,
                   "Which of them, by the split of the training config (default: validation of "
                   "the run's own images, all of others)")
      ->check(CLI::IsMember({"all", "train", "validation"}));
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->callback([flags, chosen] { *chosen = [flags] { return RunEvaluate(*flags); }; });
}

}  // namespace ringtail
