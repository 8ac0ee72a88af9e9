// dogs_vs_cats replay: training steps on a given batch, for comparison with other frameworks.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/replay.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"

namespace ringtail {
namespace {

struct ReplayFlags {
  ConfigFlags config;
  ReplayOptions options;
};

StatusOr<int> RunReplay(const ReplayFlags& flags) {
  ReplayOptions options = flags.options;
  RT_ASSIGN_OR_RETURN(options.out, OutputPath(flags.options.out));
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(flags.config.config, flags.config.set));
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads, UseThreads(flags.config, loaded.config));
  RT_RETURN_IF_ERROR(Replay(std::move(loaded), options));
  return kExitSuccess;
}

}  // namespace

void AddReplayCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<ReplayFlags>();
  CLI::App* verb = app->add_subcommand(
      "replay", "Run training steps on one given batch, to compare with another framework");
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config);
  ReplayOptions& options = flags->options;
  verb->add_option("--weights", options.weights,
                   "Parameters by name (safetensors); default: the initial ones, which are then "
                   "written as init.<name>")
      ->type_name("FILE");
  verb->add_option("--batch", options.batch, "images f32 (N,C,S,S) and labels i32 (N)")
      ->type_name("FILE")
      ->required();
  constexpr int kMostSteps = 100000;
  verb->add_option("--steps", options.steps, "Steps to run")
      ->check(CLI::Range(1, kMostSteps))
      ->capture_default_str();
  verb->add_flag("--grad-cam", options.grad_cam,
                 "Also write the activations, gradients and maps of Grad-CAM as grad_cam.<...>");
  verb->add_option("--out", options.out,
                   "loss, logits, grad.<name>, param.<name>; - is standard output")
      ->type_name("FILE")
      ->required();
  verb->footer(Examples(
      {"replay --config lenet --batch batch.safetensors --steps 3 --out out.safetensors"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunReplay(*flags); }; });
}

}  // namespace ringtail
