// dogs_vs_cats summary: the layers of a network and the cost of an image. Allocates and measures
// nothing, so that it also works for networks that this machine could not train; memory is planned
// with the convolution algorithms that were measured on this machine before, else with oneDNN's, and
// an AUTO precision is what was measured on it before, else f32. With --stages also how it could be
// cut for a pipeline of several ranks.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/algorithm_choices.h"
#include "apps/config/run_precision.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/pipeline/pipeline_summary.h"
#include "apps/print.h"
#include "apps/trainer/asynchronous/server_report.h"
#include "apps/trainer/decide_precision.h"
#include "core/units.h"
#include "data/augmentation/trivial_augment.h"
#include "dist/parameter_server/rule_choice.h"
#include "layers/net/net.h"

namespace ringtail {
namespace {

struct SummaryFlags {
  ConfigFlags config;
  StepFlags step;
  int stages = 0, micro_batches = 0;  // 0: no pipeline; the config's, or a choice
  std::string schedule = std::string(PipelineKindName(PipelineKind::kOneForwardOneBackward));
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

std::string Json(const LoadedConfig& loaded, const Net& net,
                 const std::optional<PipelineSummary>& pipeline) {
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
  if (pipeline) json["pipeline"] = PipelineJson(*pipeline);
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

// The config with what the flags say.
StatusOr<LoadedConfig> LoadConfig(SummaryFlags* flags) {
  ConfigFlags& config = flags->config;
  if (flags->step.image_size > 0) config.SetNumber("data.image_size", flags->step.image_size);
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadRunConfig(config.config, config.set));
  if (flags->stages == 0) return loaded;
  // A micro-batch is a part of the batch of a step, as gradient accumulation has them.
  const TrainConfig& train = loaded.config.train();
  const int64_t batch = flags->step.batch > 0 ? flags->step.batch : train.batch();
  RT_ASSIGN_OR_RETURN(
      flags->micro_batches,
      ChooseMicroBatches(flags->micro_batches, batch, train.accumulation(), flags->stages));
  config.SetNumber("train.batch", batch);
  config.SetNumber("train.accumulation", flags->micro_batches);
  return LoadRunConfig(config.config, config.set);
}

StatusOr<int> RunSummary(SummaryFlags flags) {
  RT_ASSIGN_OR_RETURN(LoadedConfig loaded, LoadConfig(&flags));
  StepShape step = StepOfRun(loaded.config);
  if (flags.stages == 0 && flags.step.batch > 0) step.images = flags.step.batch;
  RecallPrecision(step, &loaded);
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded, /*allocate=*/false));
  RT_ASSIGN_OR_RETURN(
      const auto net,
      Net::Create(model.get(), {.batch = step.images,
                                .image_size = TrainingImageSizes(loaded.config).front(),
                                .training = true,
                                .plan_only = true,
                                .algorithms = &ProgramAlgorithms()}));
  std::optional<PipelineSummary> pipeline;
  if (flags.stages > 0) {
    RT_ASSIGN_OR_RETURN(const PipelineKind kind, ParsePipelineKind(flags.schedule));
    RT_ASSIGN_OR_RETURN(pipeline, SummarizePipeline(model.get(), *net, loaded.config.optim(),
                                                    {kind, flags.stages, flags.micro_batches}));
  }
  if (flags.json) {
    std::cout << Json(loaded, *net, pipeline) << '\n';
    return kExitSuccess;
  }
  PrintTable(loaded, *net);
  if (pipeline) Print("\n{}", PipelineText(*pipeline));
  return kExitSuccess;
}

void AddPipelineFlags(CLI::App* verb, SummaryFlags* flags) {
  constexpr int kMostStages = 1024, kMostMicroBatches = 1 << 20;
  CLI::Option* stages =
      verb->add_option("--stages", flags->stages,
                       "Also show the network cut into so many stages of a pipeline, one per rank; "
                       "--batch is then the batch of a step")
          ->type_name("N")
          ->check(CLI::Range(1, kMostStages));
  verb->add_option("--microbatches", flags->micro_batches,
                   fmt::format("Parts of a batch that follow one another through the stages "
                               "(default: train.accumulation; if that is 1, {} per stage)",
                               kMicroBatchesPerStage))
      ->type_name("M")
      ->check(CLI::Range(1, kMostMicroBatches))
      ->needs(stages);
  verb->add_option("--schedule", flags->schedule,
                   "Order of forward and backward: 1f1b holds fewer activations than gpipe")
      ->type_name("SCHEDULE")
      ->capture_default_str()
      ->check(
          CLI::IsMember({std::string(kPipelineKindNames[0]), std::string(kPipelineKindNames[1])}))
      ->needs(stages);
}

}  // namespace

void AddSummaryCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<SummaryFlags>();
  CLI::App* verb = app->add_subcommand(
      "summary", "Show a network: shapes, parameters, FLOPs and memory per layer");
  AddConfigFlag(verb, &flags->config);
  AddSetFlag(verb, &flags->config);
  AddStepFlags(verb, &flags->step);
  AddPipelineFlags(verb, flags.get());
  verb->add_flag("--json", flags->json, "Print JSON");
  verb->footer(Examples({"summary --config resnet50 --image-size 160",
                         "summary --config resnet18 --set net.layer[fc].linear.out_features=10",
                         "summary --config vgg11_bn --stages 4 --microbatches 16"}));
  verb->callback([flags, chosen] { *chosen = [flags] { return RunSummary(*flags); }; });
}

}  // namespace ringtail
