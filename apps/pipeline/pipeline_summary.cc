#include "apps/pipeline/pipeline_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/pipeline/pipeline_problem.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/pipeline/draw_schedule.h"
#include "layers/net/cut_points.h"
#include "layers/net/graph.h"
#include "layers/net/stage_memory.h"

namespace ringtail {
namespace {

double Mib(int64_t bytes) { return static_cast<double>(bytes) / kBytesPerMib; }

NetMemoryOptions MemoryOptions(const NetOptions& options) {
  return {.training = options.training, .recompute = options.recompute, .defer = options.defer};
}

// The parts of a stage that follow from its place and its nodes.
StageSummary SummarizeStage(const Model& model, const Net& net, const PipelineSummary& summary,
                            int stage, int first, int last, int copies) {
  const NetSegment segment = DescribeSegment(model, net, first, last);
  const PipelineCosts& costs = summary.partition.costs;
  StageSummary s{.first_layer = model.graph().nodes()[first].name,
                 .last_layer = model.graph().nodes()[last].name,
                 .parameters = segment.trained_bytes / static_cast<int64_t>(sizeof(float)),
                 .flops = costs.stages[stage].forward_s + costs.stages[stage].backward_s,
                 .bubble = summary.partition.price.bubble[stage],
                 .alive = MostAlive(summary.shape, stage)};
  s.weight_bytes = WeightBytes(segment.trained_bytes, segment.fixed_bytes, copies);
  s.activation_bytes =
      PlanStageMemory(net.needs(), first, last, MemoryOptions(net.options())).BytesWith(s.alive);
  if (stage + 1 < summary.shape.stages) s.sends = costs.boundaries[stage];
  for (const int boundary : {stage - 1, stage}) {
    if (boundary < 0 || boundary + 1 == summary.shape.stages) continue;
    const BoundaryCost& crossing = costs.boundaries[boundary];
    s.message_bytes += costs.slots * (crossing.activation_bytes + crossing.gradient_bytes);
  }
  return s;
}

std::string Heading(const PipelineSummary& summary) {
  const int micro_batches = summary.shape.micro_batches;
  return fmt::format(
      "{}, schedule {}, {} {} of {}\n"
      "cut where stages are even in floating-point operations, as nothing is measured here (`time` "
      "measures layers); messages count as free\n",
      Counted(summary.shape.stages, "stage"), PipelineKindName(summary.shape.kind), micro_batches,
      micro_batches == 1 ? "micro-batch" : "micro-batches",
      Counted(summary.micro_batch_images, "image"));
}

std::string Table(const PipelineSummary& summary) {
  std::string text =
      fmt::format("{:<7} {:<52} {:>12} {:>8} {:>7} {:>6} {:>6} {:>10} {:>10}\n", "stage", "layers",
                  "parameters", "GFLOP", "share", "waits", "alive", "sends MiB", "memory MiB");
  for (size_t i = 0; i < summary.stages.size(); ++i) {
    const StageSummary& s = summary.stages[i];
    text += fmt::format(
        "{:<7} {:<52} {:>12} {:>8.2f} {:>5.1f} % {:>4.1f} % {:>5} {:>10.2f} {:>10.1f}\n", i,
        fmt::format("{} .. {}", s.first_layer, s.last_layer), s.parameters, s.flops / kGiga,
        kPercent * s.share, kPercent * s.bubble, s.alive, Mib(s.sends.activation_bytes),
        Mib(s.memory_bytes()));
  }
  return text;
}

std::string WithoutParts(const PipelineSummary& summary) {
  const StatusOr<int64_t>& bytes = summary.whole_batch_bytes;
  return bytes.ok() ? fmt::format("without parts {:.1f} MiB", Mib(*bytes))
                    : fmt::format("without parts impossible: {}", bytes.status().message());
}

// One process that computes a batch of so many images in one pass, without its weights.
StatusOr<int64_t> StepBytes(Model* model, NetOptions options, int64_t batch) {
  options.batch = batch;
  options.plan_only = true;
  RT_ASSIGN_OR_RETURN(const auto net, Net::Create(model, options));
  return net->memory_bytes();
}

}  // namespace

double PipelineSummary::LargestShare() const {
  double largest = 0;
  for (const StageSummary& stage : stages) largest = std::max(largest, stage.share);
  return largest;
}

StatusOr<PipelineSummary> SummarizePipeline(Model* model, const Net& net, const OptimConfig& optim,
                                            const PipelineShape& shape) {
  RT_ASSIGN_OR_RETURN(const int copies, CountWeightCopies(optim, shape.micro_batches));
  NetPipeline pipeline = MakeNetPipeline(*model, net, FlopsAsSeconds(net), shape, copies);
  pipeline.problem.fewer_bytes_within = kFewerBytesWithin;
  PipelineSummary summary{.shape = shape, .micro_batch_images = net.options().batch};
  RT_ASSIGN_OR_RETURN(summary.partition, PartitionLayers(pipeline.problem));
  double flops = 0;
  int64_t weight_bytes = 0, trained_bytes = 0;
  int first = 0;
  for (const int last : pipeline.LastNodes(summary.partition)) {
    const auto stage = static_cast<int>(summary.stages.size());
    summary.stages.push_back(SummarizeStage(*model, net, summary, stage, first, last, copies));
    flops += summary.stages.back().flops;
    weight_bytes += summary.stages.back().weight_bytes;
    trained_bytes += summary.stages.back().parameters * static_cast<int64_t>(sizeof(float));
    first = last + 1;
  }
  summary.alone_bytes = weight_bytes + net.memory_bytes();
  summary.whole_batch_bytes =
      StepBytes(model, net.options(), net.options().batch * shape.micro_batches);
  if (summary.whole_batch_bytes.ok()) {
    *summary.whole_batch_bytes += weight_bytes - (shape.micro_batches > 1 ? trained_bytes : 0);
  }
  for (StageSummary& stage : summary.stages) stage.share = flops > 0 ? stage.flops / flops : 0;
  return summary;
}

std::string PipelineText(const PipelineSummary& summary) {
  const PipelinePartition& partition = summary.partition;
  int64_t largest = 0;
  for (const StageSummary& stage : summary.stages) {
    largest = std::max(largest, stage.memory_bytes());
  }
  std::string text = Heading(summary) + '\n' + Table(summary);
  text +=
      "\nGFLOP: forward and backward of a micro-batch; sends: activations of one; alive: "
      "micro-batches whose activations a rank holds; memory: weights, gradients, optimizer state, "
      "activations, messages\n";
  text += fmt::format(
      "memory: the largest rank has {:.1f} MiB, one process with as many parts per "
      "batch {:.1f} MiB, {}\n",
      Mib(largest), Mib(summary.alone_bytes), WithoutParts(summary));
  text += fmt::format(
      "balance: the largest stage has {:.2f} times the mean; ranks wait for {:.1f} % of a step, "
      "and for {:.1f} % if all stages were equal\n",
      summary.LargestShare() * summary.shape.stages, kPercent * partition.price.MeanBubble(),
      kPercent * IdealBubble(summary.shape));
  text += fmt::format("the step waits for: {}\n", DescribeCriticalPath(partition.price));
  if (!partition.is_proven) {
    text += "there were too many cuts to compare them all: there may be a better one\n";
  }
  return text + '\n' + DrawSchedule(summary.shape);
}

nlohmann::ordered_json PipelineJson(const PipelineSummary& summary) {
  const PipelinePartition& partition = summary.partition;
  nlohmann::ordered_json json = {
      {"schedule", PipelineKindName(summary.shape.kind)},
      {"micro_batches", summary.shape.micro_batches},
      {"micro_batch_images", summary.micro_batch_images},
      {"balanced_by", "flops"},
      {"largest_stage_of_mean", summary.LargestShare() * summary.shape.stages},
      {"bubble", partition.price.MeanBubble()},
      {"ideal_bubble", IdealBubble(summary.shape)},
      {"critical_path", DescribeCriticalPath(partition.price)},
      {"best_is_proven", partition.is_proven},
      {"memory_bytes_of_one_process", summary.alone_bytes}};
  if (summary.whole_batch_bytes.ok()) {
    json["memory_bytes_of_one_process_without_parts"] = *summary.whole_batch_bytes;
  }
  json["stages"] = nlohmann::ordered_json::array();
  for (const StageSummary& s : summary.stages) {
    json["stages"].push_back({{"first_layer", s.first_layer},
                              {"last_layer", s.last_layer},
                              {"parameters", s.parameters},
                              {"flops_per_micro_batch", s.flops},
                              {"share", s.share},
                              {"bubble", s.bubble},
                              {"micro_batches_alive", s.alive},
                              {"activation_bytes_sent", s.sends.activation_bytes},
                              {"gradient_bytes_received", s.sends.gradient_bytes},
                              {"weight_bytes", s.weight_bytes},
                              {"activation_bytes", s.activation_bytes},
                              {"message_bytes", s.message_bytes},
                              {"memory_bytes", s.memory_bytes()}});
  }
  json["timetable"] = DrawSchedule(summary.shape);
  return json;
}

StatusOr<int> ChooseMicroBatches(int asked, int64_t batch, int64_t accumulation, int stages) {
  const auto divides = [batch](int64_t parts) { return parts >= 1 && batch % parts == 0; };
  if (asked == 0 && accumulation > 1) return static_cast<int>(accumulation);
  int64_t below = std::min(asked > 0 ? asked : int64_t{kMicroBatchesPerStage} * stages, batch);
  if (asked > 0 && divides(asked)) return asked;
  while (!divides(below)) --below;
  if (asked == 0) return static_cast<int>(below);
  int64_t above = asked;
  while (above <= batch && !divides(above)) ++above;
  return InvalidArgument(fmt::format(
      "--microbatches {} does not divide the batch of {}; {} would", asked, Counted(batch, "image"),
      above <= batch ? fmt::format("{} or {}", below, above) : std::to_string(below)));
}

}  // namespace ringtail
