// dogs_vs_cats summary: the layers of a network and the cost of an image. Allocates and measures
// nothing, so that it also works for networks that this machine could not train; memory is planned
// with the convolution algorithms that were measured on this machine before, else with oneDNN's, and
// an AUTO precision is what was measured on it before, else f32.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/algorithm_choices.h"
#include "apps/config/run_precision.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/print.h"
#include "apps/trainer/asynchronous/server_report.h"
#include "apps/trainer/decide_precision.h"
#include "data/augmentation/trivial_augment.h"
#include "dist/parameter_server/rule_choice.h"
#include "layers/net/net.h"

namespace ringtail {
namespace {

constexpr double kMega = 1e6, kBytesPerMib = 1 << 20;

struct SummaryFlags {
  ConfigFlags config;
  StepFlags step;
  bool json = false;
};

// Values of the layers per batch; `layers` has them per image.
struct Totals {
  double forward_flops = 0, backward_flops = 0;
  int64_t parameters = 0;
};

Totals Sum(const Net& net) {
  Totals totals;
  for (const LayerInfo& layer : net.layers()) {
    totals.forward_flops += layer.forward_flops;
    totals.backward_flops += layer.backward_flops;
    totals.parameters += layer.parameters;
  }
  return totals;
}

std::string Json(const LoadedConfig& loaded, const Net& net) {
  const auto batch = static_cast<double>(net.options().batch);
  const Totals totals = Sum(net);
  nlohmann::ordered_json json = {{"net", loaded.config.net().name()},
                                 {"batch", net.options().batch},
                                 {"image_size", net.options().image_size},
                                 {"precision", Precision_Name(PrecisionOf(loaded.config.train()))},
                                 {"parameters", totals.parameters},
                                 {"forward_flops_per_image", totals.forward_flops / batch},
                                 {"backward_flops_per_image", totals.backward_flops / batch},
                                 {"memory_bytes", net.memory_bytes()}};
  json["layers"] = nlohmann::ordered_json::array();
  for (const LayerInfo& layer : net.layers()) {
    json["layers"].push_back({{"name", layer.name},
                              {"kind", layer.kind},
                              {"shape", {layer.dst.N, layer.dst.C, layer.dst.H, layer.dst.W}},
                              {"type", BlobTypeName(layer.dst.type)},
                              {"through_f32", layer.through_f32},
                              {"parameters", layer.parameters},
                              {"forward_flops_per_image", layer.forward_flops / batch},
                              {"backward_flops_per_image", layer.backward_flops / batch},
                              {"memory_bytes", layer.memory_bytes},
                              {"implementation", layer.implementation}});
  }
  return json.dump(1);
}

void PrintTable(const LoadedConfig& loaded, const Net& net) {
  const auto batch = static_cast<double>(net.options().batch);
  Print("{}: images of {} pixels, memory for a batch of {}\n\n", loaded.config.net().name(),
        net.options().image_size, net.options().batch);
  Print("{:<32} {:<28} {:>16} {:<5} {:>12} {:>10} {:>10}\n", "layer", "kind", "output", "type",
        "parameters", "MFLOP", "MiB");
  for (const LayerInfo& layer : net.layers()) {
    Print("{:<32} {:<28} {:>16} {:<5} {:>12} {:>10.2f} {:>10.1f}{}\n", layer.name, layer.kind,
          layer.dst.ShapeString(), BlobTypeName(layer.dst.type), layer.parameters,
          layer.forward_flops / batch / kMega,
          static_cast<double>(layer.memory_bytes) / kBytesPerMib,
          layer.through_f32 ? "  through f32" : "");
  }
  const Totals totals = Sum(net);
  Print(
      "\n{} parameters; forward {:.1f} MFLOP per image, forward and backward {:.1f}; "
      "memory of a training step {:.1f} MiB (planned; areas are shared), weights {:.1f} MiB\n",
      totals.parameters, totals.forward_flops / batch / kMega,
      (totals.forward_flops + totals.backward_flops) / batch / kMega,
      static_cast<double>(net.memory_bytes()) / kBytesPerMib,
      static_cast<double>(totals.parameters) * sizeof(float) / kBytesPerMib);
  Print("{}\n", DescribeRunPrecision(loaded.config.train(), net.layers()));
  const std::string augmented = DescribeAugmentations(loaded.config.data().augment());
  if (!augmented.empty()) Print("training images: {}\n", augmented);
  const AsynchronousConfig& servers = loaded.config.dist().asynchronous();
  if (UsesServers(servers)) Print("several ranks: {}\n", DescribeRule(servers));
}

StatusOr<int> RunSummary(SummaryFlags flags) {
  if (flags.step.image_size > 0) flags.config.SetNumber("data.image_size", flags.step.image_size);
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(flags.config.config, flags.config.set));
  StepShape step = StepOfRun(loaded.config);
  if (flags.step.batch > 0) step.images = flags.step.batch;
  RecallPrecision(step, &loaded);
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded, /*allocate=*/false));
  RT_ASSIGN_OR_RETURN(
      const auto net,
      Net::Create(model.get(), {.batch = step.images,
                                .image_size = TrainingImageSizes(loaded.config).front(),
                                .training = true,
                                .plan_only = true,
                                .algorithms = &ProgramAlgorithms()}));
  if (flags.json) {
    std::cout << Json(loaded, *net) << '\n';
  } else {
    PrintTable(loaded, *net);
  }
  return kExitSuccess;
}

}  // namespace

void AddSummaryCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<SummaryFlags>();
  CLI::App* verb = app->add_subcommand(
      "summary", "Show a network: shapes, parameters, FLOPs and memory per layer");
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddStepFlags(verb, &flags->step);
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(Examples({"summary --config resnet50 --image-size 160",
                         "summary --config resnet18 --set net.layer[fc].linear.out_features=10"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunSummary(*flags); }; });
}

}  // namespace ringtail
