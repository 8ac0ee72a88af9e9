// dogs_vs_cats emulate: many virtual workers in one process, with real gradients and a virtual
// clock (apps/emulator/).
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "apps/config/class_outputs.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/emulator/emulation.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/trainer/decide_precision.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

struct EmulateFlags {
  ConfigFlags config;
  std::string script, data, out, network;
  std::vector<std::string> script_set;
  bool json = false, measure = false;
};

// As a script has it.
void PrintCompute(const ComputeScript& compute) {
  Print("compute {{ {} }}\n", compute.ShortDebugString());
}

void PrintSummary(const EmulationResult& result) {
  const EmulationSummary& summary = result.summary;
  Print("{} steps of {} images in {:.3f} virtual s: {:.1f} images/s\n", summary.steps,
        summary.images, summary.virtual_s, summary.images_per_s());
  const double all = summary.compute_s + summary.blocked_s;
  Print("workers computed {:.1f} % of their time; {:.1f} MB sent in all\n",
        all > 0 ? 100 * summary.compute_s / all : 0, static_cast<double>(summary.sent_bytes) / 1e6);
  Print("validation {:.2f} %, best {:.2f} % at {:.3f} virtual s\n", 100 * summary.accuracy,
        100 * summary.best_accuracy, summary.best_accuracy_s);
  if (const StalenessStatistics& late = summary.staleness; late.count() > 0) {
    Print(
        "gradients were {:.1f} updates late in the mean, 95 % at most {}, all at most {}; {} "
        "thrown away\n",
        late.Mean(), late.Quantile(0.95), late.max(), summary.discarded);
  }
  PrintCompute(result.compute);
  Print(
      "took {:.1f} s: forward {:.1f}, backward {:.1f}, updates {:.1f}, exchanges {:.1f}, "
      "evaluations {:.1f}\n",
      result.real_s, result.pass_times.forward_seconds, result.pass_times.backward_seconds,
      result.real.update, result.real.exchange, result.real.evaluation);
}

// The lines first, so that no other file that cannot be written loses them; also those of a run
// that a signal or an error has ended.
StatusOr<int> Finish(const EmulateFlags& flags, const Status& ended, Emulation* emulation) {
  const EmulationResult result = emulation->Result();
  const EmulationSummary& summary = result.summary;
  const Status lines = flags.out.empty() ? OkStatus() : WriteFileAtomic(flags.out, result.lines);
  if (!ended.ok()) {
    if (!lines.ok()) LogError(lines.message());
    if (StopSignal() == 0) return ended;
    LogWarning(fmt::format("stopped by a signal after {} steps, at {:.3f} virtual s", summary.steps,
                           summary.virtual_s));
    return kExitSignalBase + StopSignal();
  }
  if (flags.json) {
    std::cout << SummaryJson(summary) << '\n';
  } else {
    PrintSummary(result);
  }
  if (!summary.diverges.empty()) LogWarning(summary.diverges);
  if (!summary.not_finite.empty()) LogError("not finite: " + summary.not_finite);
  const Status network =
      flags.network.empty() ? OkStatus() : emulation->WriteNetwork(flags.network);
  RT_RETURN_IF_ERROR(lines);
  RT_RETURN_IF_ERROR(network);
  return summary.not_finite.empty() ? kExitSuccess : kExitNotFinite;
}

StatusOr<int> RunEmulate(EmulateFlags flags) {
  ReceiveStopSignals();
  RT_ASSIGN_OR_RETURN(flags.out, OutputPath(flags.out));
  if (!flags.data.empty()) flags.config.SetString("data.path", flags.data);
  for (const std::string& path : {flags.out, flags.network}) {
    if (!path.empty()) RT_RETURN_IF_ERROR(CheckOutputPath(path));
  }
  RT_ASSIGN_OR_RETURN(EmulationScript script, ReadScript(flags.script, flags.script_set));
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(flags.config.config, flags.config.set));
  if (loaded.config.data().path().empty()) {
    return InvalidArgument("no images are named; give --data DIR or set data.path");
  }
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads, UseThreads(flags.config, loaded.config));
  TrainingWorld alone;
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded.config.data(), &alone));
  RT_ASSIGN_OR_RETURN(const std::string outputs,
                      FitOutputsToClasses(static_cast<int>(data.dataset->class_names().size()),
                                          flags.config.set, &loaded.config));
  if (!outputs.empty()) LogInfo(outputs);
  RT_RETURN_IF_ERROR(DecidePrecisionAlone(StepOfRun(loaded.config), &loaded));
  if (flags.measure) {
    script.clear_compute();  // else there would be nothing to measure
    RT_ASSIGN_OR_RETURN(const auto job, EmulatedJob::Create(&loaded, &data, script));
    PrintCompute(job->compute());
    return kExitSuccess;
  }
  auto emulation = Emulation::Create(&loaded, &data, script);
  if (!emulation.ok() && StopSignal() != 0) return kExitSignalBase + StopSignal();
  RT_RETURN_IF_ERROR(Status(emulation.status()));
  const Status ended = emulation->Run();
  return Finish(flags, ended, &*emulation);
}

}  // namespace

void AddEmulateCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<EmulateFlags>();
  CLI::App* verb = app->add_subcommand(
      "emulate", "Train with many virtual workers in one process, by a virtual clock");
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config);
  verb->add_option("--script", flags->script,
                   "Workers, network and events as protobuf text (default: 4 workers)")
      ->type_name("FILE");
  verb->add_option("--script-set", flags->script_set, "A field of the script, as --set; repeatable")
      ->type_name("FIELD=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--data", flags->data, "Folder, list file or packed file with the images")
      ->type_name("PATH");
  verb->add_option(
          "--out", flags->out,
          "Write a JSON object per step, round, evaluation and event; - is standard output")
      ->type_name("FILE");
  verb->add_option("--network", flags->network,
                   "Write the trained network, for evaluate and predict")
      ->type_name("FILE");
  verb->add_flag("--measure", flags->measure,
                 "Only measure what a step costs here, and print it as a script has it");
  verb->add_flag("--json", flags->json, "Print the summary as JSON");
  verb->footer(Examples({"emulate --config lenet --data ~/pets --out steps.jsonl",
                         "emulate --config lenet --data ~/pets --script slow.textproto --json"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunEmulate(*flags); }; });
}

}  // namespace ringtail
