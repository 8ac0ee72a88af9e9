// dogs_vs_cats evaluate: how well a trained network does on labelled images.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/trained_network.h"
#include "apps/evaluation/evaluate_network.h"
#include "apps/evaluation/evaluation_summary.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "core/logging.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

struct EvaluateFlags {
  NetworkFlags network;
  std::string data;
  std::string part;  // empty: DefaultPart
  bool json = false;
  std::string json_file;  // empty: standard output
  std::string csv;        // empty: none
};

Status WriteJson(const std::string& path, const std::string& json) {
  if (!path.empty()) return WriteFileAtomic(path, json);
  Print("{}", json);
  return OkStatus();
}

StatusOr<int> RunEvaluate(EvaluateFlags flags) {
  if (flags.csv == "-" && flags.json && (flags.json_file.empty() || flags.json_file == "-")) {
    return InvalidArgument(
        "--csv - and --json both write to standard output; give a file to one of them");
  }
  RT_ASSIGN_OR_RETURN(flags.csv, OutputPath(flags.csv));
  RT_ASSIGN_OR_RETURN(flags.json_file, OutputPath(flags.json_file));
  if (!flags.data.empty()) {
    flags.network.config.SetString("data.path", flags.data);
    flags.network.config.set.push_back("data.layout=AUTO");
  }
  RT_ASSIGN_OR_RETURN(const TrainedModel trained, ReadNetwork(flags.network));
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads,
                      UseThreads(flags.network.config, trained.loaded.config));
  RT_ASSIGN_OR_RETURN(const NetworkEvaluation evaluation, EvaluateNetwork(trained, flags.part));
  if (evaluation.part != "validation" && DefaultPart(trained) == "validation") {
    LogWarning(
        fmt::format("part '{}' has images that the network was trained on; --part "
                    "validation has those that it has not seen",
                    evaluation.part));
  }
  const EvaluationSummary summary = Summarize(evaluation.scored);
  if (!flags.csv.empty()) {
    RT_RETURN_IF_ERROR(WriteFileAtomic(flags.csv, ScoredImagesCsv(evaluation.scored)));
  }
  if (flags.json) {
    RT_RETURN_IF_ERROR(
        WriteJson(flags.json_file, SummaryJson(summary, evaluation.scored.class_names,
                                               {.part = evaluation.part,
                                                .bad_images = std::ssize(evaluation.bad),
                                                .images_per_s = evaluation.images_per_s}) +
                                       '\n'));
    if (flags.json_file.empty()) return kExitSuccess;
  }
  Print("accuracy {:.2f} % ({} of {} images, {}), loss {:.4f}, {:.0f} images/s\n{}",
        100 * summary.accuracy, summary.correct, summary.images, evaluation.part, summary.loss,
        evaluation.images_per_s, SummaryText(summary, evaluation.scored.class_names));
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
  CLI::Option* json =
      verb->add_option("--json", flags->json_file,
                       "Print JSON in scikit-learn's names instead, or write it to FILE as well")
          ->type_name("[FILE]")
          ->expected(0, 1);
  verb->add_option("--csv", flags->csv,
                   "Write a row per image: file, label, predicted class, loss, probability of each "
                   "class; - is standard output")
      ->type_name("FILE");
  verb->footer(Examples(
      {"evaluate --checkpoint runs/first",
       "evaluate --checkpoint runs/first --data ~/others --csv others.csv --json others.json"}));
  verb->callback([flags, json, chosen] {
    flags->json = json->count() > 0;
    *chosen = [flags] { return RunEvaluate(*flags); };
  });
}

}  // namespace ringtail
