// ringtail lr-find: a learning rate for a network and its images, found in some 100 steps.
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/config/class_outputs.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/lr_find/lr_find.h"
#include "apps/number_flags.h"
#include "apps/print.h"
#include "apps/trainer/data_warnings.h"
#include "apps/trainer/decide_precision.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr double kSmallFall = 0.02;  // of the loss: hardly more than noise

struct LrFindFlags {
  ConfigFlags config;
  std::string data, weights, freeze;
  RateRange range = {.steps = 100};
  bool json = false;
};

// What is printed.
struct Finding {
  const LoadedConfig& loaded;
  const RateCurve& curve;
  RateSuggestion suggestion;
  int64_t training_images;

  // What optim.learning_rate is to be.
  double configured() const {
    return AsConfigured(suggestion.valley, loaded.config, training_images);
  }
};

std::string SetFlag(const Finding& finding) {
  return fmt::format("optim.learning_rate={:.2g}", finding.configured());
}

std::string Json(const Finding& finding) {
  const RunConfig& config = finding.loaded.config;
  nlohmann::ordered_json json = {{"net", config.net().name()},
                                 {"batch", config.train().batch()},
                                 {"diverged", finding.curve.diverged()},
                                 {"suggested_learning_rate", finding.configured()},
                                 {"valley_rate", finding.suggestion.valley},
                                 {"steepest_rate", finding.suggestion.steepest},
                                 {"fall_fraction", finding.suggestion.fall},
                                 {"set", SetFlag(finding)}};
  json["points"] = nlohmann::ordered_json::array();
  for (const RatePoint& point : finding.curve.points()) {
    json["points"].push_back(
        {{"rate", point.rate}, {"loss", point.loss}, {"smoothed_loss", point.smoothed}});
  }
  return json.dump(1);
}

void PrintTable(const std::vector<RatePoint>& points) {
  constexpr size_t kLines = 20;
  Print("{:>10} {:>10} {:>10}\n", "rate", "loss", "smoothed");
  const size_t every = (points.size() + kLines - 1) / kLines;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i % every != 0 && i + 1 != points.size()) continue;
    Print("{:>10.2e} {:>10.4f} {:>10.4f}\n", points[i].rate, points[i].loss, points[i].smoothed);
  }
}

void PrintFinding(const Finding& finding) {
  constexpr int kWidth = 64, kHeight = 12;
  const RunConfig& config = finding.loaded.config;
  PrintTable(finding.curve.points());
  Print("\nsmoothed loss over the rate\n{}\n", DrawCurve(finding.curve.points(), kWidth, kHeight));
  const RatePoint& last = finding.curve.points().back();
  Print("{} at a rate of {:.2g}\n",
        finding.curve.diverged() ? "ended where the loss ran away," : "ended", last.rate);
  Print("steepest descent at {:.2g}, middle of the valley at {:.2g}\n", finding.suggestion.steepest,
        finding.suggestion.valley);
  const double configured = finding.configured();
  const std::string reference =
      configured == finding.suggestion.valley
          ? ""
          : fmt::format(" ({:.2g} at batch {} and for {:g} epochs, as optim.batch_scaling has it)",
                        finding.suggestion.valley, config.train().batch(), config.train().epochs());
  Print("suggested: --set {}{}; configured: {:.2g}\n", SetFlag(finding), reference,
        config.optim().learning_rate());
}

// On a terminal.
RateListener ProgressOf(const RateRange& range) {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [steps = range.steps, step = int64_t{0}](const RatePoint& point) mutable {
    PrintTo(stderr, "\r\033[Kstep {} of {}  rate {:.2e}  loss {:.4f}", ++step, steps, point.rate,
            point.loss);
  };
}

Status FillRange(const OptimConfig& optim, RateRange* range) {
  const RateRange otherwise = DefaultRange(optim);
  if (range->from == 0) range->from = otherwise.from;
  if (range->to == 0) range->to = otherwise.to;
  if (range->from < range->to) return OkStatus();
  return InvalidArgument(fmt::format("--from {:g} is not below --to {:g}; give a range of rates",
                                     range->from, range->to));
}

StatusOr<LoadedConfig> LoadConfigOf(LrFindFlags* flags) {
  if (!flags->data.empty()) flags->config.SetString("data.path", flags->data);
  if (!flags->weights.empty()) flags->config.SetString("train.weights", flags->weights);
  if (!flags->freeze.empty()) flags->config.set.push_back("train.freeze=" + flags->freeze);
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(flags->config.config, flags->config.set));
  if (loaded.config.data().path().empty()) {
    return InvalidArgument("no images are named; give --data DIR or set data.path");
  }
  return loaded;
}

StatusOr<int> RunLrFind(LrFindFlags flags) {
  ReceiveStopSignals();
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadConfigOf(&flags));
  RT_RETURN_IF_ERROR(FillRange(loaded.config.optim(), &flags.range));
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads, UseThreads(flags.config, loaded.config));
  RT_ASSIGN_OR_RETURN(const TrainingData data, OpenUnscanned(loaded.config.data()));
  RT_ASSIGN_OR_RETURN(const std::string fitted,
                      FitOutputsToClasses(static_cast<int>(data.dataset->class_names().size()),
                                          flags.config.set, &loaded.config));
  if (!fitted.empty()) LogInfo(fitted);
  RT_RETURN_IF_ERROR(DecidePrecisionAlone(StepOfRun(loaded.config), &loaded));
  for (const std::string& warning :
       DataWarnings(data, loaded.config, loaded.config.train().batch())) {
    LogWarning(warning);
  }
  if (!flags.json) {
    Print("{}\n{}: batches of {}, rates from {:.2g} to {:.2g} in {} steps\n",
          data.dataset->Describe(), loaded.config.net().name(), loaded.config.train().batch(),
          flags.range.from, flags.range.to, flags.range.steps);
    std::fflush(stdout);
  }
  const RateListener listener = ProgressOf(flags.range);
  const auto curve = SweepRates(loaded, data, flags.range, listener);
  if (listener) PrintTo(stderr, "\r\033[K");
  if (curve.status().code() == StatusCode::kCancelled) {
    LogWarning(curve.status().message());
    return kExitSignalBase + StopSignal();
  }
  RT_RETURN_IF_ERROR(Status(curve.status()));
  RT_ASSIGN_OR_RETURN(const RateSuggestion suggestion, SuggestRate(flags.range, curve->points()));
  const Finding finding{.loaded = loaded,
                        .curve = *curve,
                        .suggestion = suggestion,
                        .training_images = std::ssize(data.split.train)};
  if (flags.json) {
    std::cout << Json(finding) << '\n';
  } else {
    PrintFinding(finding);
  }
  if (suggestion.fall < kSmallFall) {
    LogWarning(fmt::format(
        "the loss fell by {:.2g} % only, so the suggestion may be noise; more steps (--steps) or a "
        "larger batch (train.batch) show more",
        100 * suggestion.fall));
  }
  return kExitSuccess;
}

}  // namespace

void AddLrFindCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<LrFindFlags>();
  CLI::App* verb = app->add_subcommand(
      "lr-find", "Suggest a learning rate: the loss over some steps, each at a higher rate");
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config);
  verb->add_option("--data", flags->data, "Folder, list file or packed file with the images")
      ->type_name("PATH");
  verb->add_option("--weights", flags->weights, "Begin with these weights, as train does")
      ->type_name("FILE|RUN");
  verb->add_option("--freeze", flags->freeze, "Layers that do not train, as train takes them")
      ->type_name("LAYER,...");
  verb->add_option("--from", flags->range.from,
                   "Lowest rate (default: one at which the optimizer hardly moves weights)")
      ->check(NumberIn(CLI::PositiveNumber))
      ->type_name("RATE");
  verb->add_option("--to", flags->range.to,
                   "Highest rate (default: one at which the optimizer breaks any network)")
      ->check(NumberIn(CLI::PositiveNumber))
      ->type_name("RATE");
  constexpr int64_t kMostSteps = 100000;
  verb->add_option("--steps", flags->range.steps, "Steps from the lowest to the highest rate")
      ->check(CLI::Range(kFewestPoints, kMostSteps))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(Examples({"lr-find --data ~/pets",
                         "lr-find --data ~/pets --config resnet18 --weights resnet18.pth --freeze "
                         "all-but-head",
                         "lr-find --data ~/pets --set optim.adamw={} --from 1e-6 --to 0.1"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunLrFind(*flags); }; });
}

}  // namespace ringtail
