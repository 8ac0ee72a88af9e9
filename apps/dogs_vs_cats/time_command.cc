// dogs_vs_cats time: the time of a training step, layer by layer.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/config/run_precision.h"
#include "apps/dogs_vs_cats/algorithm_table.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/dogs_vs_cats/net_timing.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/trainer/decide_precision.h"
#include "apps/version.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

struct TimeFlags {
  ConfigFlags config;
  StepFlags step;
  int64_t iterations = 10;
  bool json = false;
};

std::string Json(const LoadedConfig& loaded, const TimingOptions& options,
                 const NetTiming& timing) {
  nlohmann::ordered_json json = {{"net", loaded.config.net().name()},
                                 {"batch", options.batch},
                                 {"image_size", options.image_size},
                                 {"threads", NumComputeThreads()},
                                 {"precision", Precision_Name(PrecisionOf(loaded.config.train()))},
                                 {"iterations", options.iterations},
                                 {"step_ms", timing.step_ms},
                                 {"fastest_step_ms", timing.fastest_step_ms},
                                 {"slowest_step_ms", timing.slowest_step_ms},
                                 {"images_per_s", timing.images_per_s},
                                 {"gflop_per_s", timing.gflop_per_s},
                                 {"peak_memory_mib", timing.peak_memory_mib},
                                 {"planned_memory_mib", timing.planned_memory_mib},
                                 {"parameters", timing.parameters}};
  if (const TrainConfig& train = loaded.config.train(); train.precision() == AUTO) {
    json["precision_measured"] = {{"float32_ms", train.measured_precision().float32_ms()},
                                  {"bfloat16_ms", train.measured_precision().bfloat16_ms()}};
  }
  json["layers"] = nlohmann::ordered_json::array();
  for (const LayerTiming& layer : timing.layers) {
    json["layers"].push_back(
        {{"name", layer.info.name},
         {"kind", layer.info.kind},
         {"type", BlobTypeName(layer.info.dst.type)},
         {"implementation", layer.info.implementation},
         {"forward_ms", layer.forward_ms},
         {"backward_ms", layer.backward_ms},
         {"forward_gflop_per_s", layer.forward_gflop_per_s},
         {"traffic_mib", static_cast<double>(layer.info.traffic_bytes) / (1 << 20)},
         {"backward_gflop_per_s", layer.backward_gflop_per_s},
         {"share", layer.share},
         {"algorithms", AlgorithmJson(layer.info)}});
  }
  return json.dump(1);
}

void PrintTable(const LoadedConfig& loaded, const TimingOptions& options, const NetTiming& timing) {
  Print("{}\n{}: batch {} of {} pixels, {} threads\n{}\n\n", VersionLine(),
        loaded.config.net().name(), options.batch, options.image_size, NumComputeThreads(),
        timing.precision);
  Print("{:<32} {:<28} {:>9} {:>9} {:>8} {:>8} {:>6}  {}\n", "layer", "kind", "fwd ms", "bwd ms",
        "fwd GF/s", "bwd GF/s", "share", "implementation");
  for (const LayerTiming& layer : timing.layers) {
    Print("{:<32} {:<28} {:>9.3f} {:>9.3f} {:>8.1f} {:>8.1f} {:>5.1f}%  {}\n", layer.info.name,
          layer.info.kind, layer.forward_ms, layer.backward_ms, layer.forward_gflop_per_s,
          layer.backward_gflop_per_s, 100 * layer.share, layer.info.implementation);
  }
  Print(
      "\nstep {:.2f} ms (median of {}; {:.2f} .. {:.2f}), {:.1f} images/s, {:.1f} GFLOP/s, "
      "peak memory {:.0f} MiB\n",
      timing.step_ms, options.iterations, timing.fastest_step_ms, timing.slowest_step_ms,
      timing.images_per_s, timing.gflop_per_s, timing.peak_memory_mib);
  std::vector<LayerInfo> layers;
  for (const LayerTiming& layer : timing.layers) layers.push_back(layer.info);
  PrintAlgorithmTable(layers);
}

StatusOr<int> RunTime(TimeFlags flags) {
  if (flags.step.image_size > 0) flags.config.SetNumber("data.image_size", flags.step.image_size);
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(flags.config.config, flags.config.set));
  RT_ASSIGN_OR_RETURN(const ComputeThreads threads, UseThreads(flags.config, loaded.config));
  TimingOptions options;
  options.batch = flags.step.batch > 0 ? flags.step.batch : PartBatch(loaded.config);
  options.image_size = loaded.config.data().image_size();
  options.iterations = flags.iterations;
  RT_RETURN_IF_ERROR(DecidePrecisionAlone({options.batch, options.image_size}, &loaded));
  RT_ASSIGN_OR_RETURN(const NetTiming timing, TimeNet(loaded, options));
  if (flags.json) {
    std::cout << Json(loaded, options, timing) << '\n';
  } else {
    PrintTable(loaded, options, timing);
  }
  return kExitSuccess;
}

}  // namespace

void AddTimeCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<TimeFlags>();
  CLI::App* verb = app->add_subcommand(
      "time", "Time a training step, whole and layer by layer, on random images");
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config);
  AddStepFlags(verb, &flags->step);
  constexpr int64_t kMostIterations = 1 << 20;
  verb->add_option("--iterations", flags->iterations, "Timed steps")
      ->check(CLI::Range(int64_t{1}, kMostIterations))
      ->capture_default_str();
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(Examples({"time --config resnet18 --batch 32 --image-size 160"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunTime(*flags); }; });
}

}  // namespace ringtail
