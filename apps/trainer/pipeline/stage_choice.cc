#include "apps/trainer/pipeline/stage_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/check.h"
#include "core/text/counted.h"
#include "layers/net/cut_points.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

constexpr const char* kPipeline = "dist.model_parallel.pipeline";

// The nodes after which the net is cut.
StatusOr<std::vector<int>> CutNodes(const LoadedConfig& loaded, const Graph& graph,
                                    std::span<const std::string> cut_after) {
  const std::vector<int> possible = NodesToCutAfter(graph);
  std::vector<int> nodes;
  for (const std::string& name : cut_after) {
    const auto found =
        std::ranges::find_if(possible, [&](int node) { return graph.nodes()[node].name == name; });
    if (found == possible.end()) {
      std::vector<std::string> names;
      for (const int node : possible) {
        if (!PartsBatchNorm(graph, node)) names.push_back(graph.nodes()[node].name);
      }
      return loaded.source.Error(
          fmt::format("{}.cut_after", kPipeline),
          fmt::format(
              "the net cannot be cut after '{}', where one blob would have to cross; it can "
              "after {}",
              name, fmt::join(names, ", ")));
    }
    if (!nodes.empty() && nodes.back() >= *found) {
      return loaded.source.Error(
          fmt::format("{}.cut_after", kPipeline),
          fmt::format("'{}' comes before '{}' in the net: name each stage's last layer, in order",
                      name, graph.nodes()[nodes.back()].name));
    }
    nodes.push_back(*found);
  }
  nodes.push_back(graph.size() - 1);
  return nodes;
}

}  // namespace

PipelineShape PipelineShapeOf(const RunConfig& config) {
  const PipelineConfig& pipeline = config.dist().model_parallel().pipeline();
  return {.kind = pipeline.schedule() == PipelineConfig::GPIPE
                      ? PipelineKind::kGpipe
                      : PipelineKind::kOneForwardOneBackward,
          .stages = pipeline.stages(),
          .micro_batches = static_cast<int>(config.train().accumulation())};
}

std::vector<int> StageChoice::Replicas(int of_stage) const {
  std::vector<int> ranks;
  for (int i = 0; i < replicas; ++i) ranks.push_back(i * shape.stages + of_stage);
  return ranks;
}

std::string StageChoice::Describe() const {
  if (!divides()) return {};
  std::vector<std::string> stages;
  for (int i = 0; i < shape.stages; ++i) {
    stages.push_back(fmt::format("{} .. {}", first_layers[i], last_layers[i]));
  }
  return fmt::format("{}, {} stages, schedule {}, {} {}: {}",
                     replicas == 1 ? "a pipeline" : fmt::format("{} pipelines", replicas),
                     shape.stages, PipelineKindName(shape.kind), shape.micro_batches,
                     shape.micro_batches == 1 ? "micro-batch" : "micro-batches",
                     fmt::join(stages, " | "));
}

StatusOr<StageChoice> ChooseStage(const LoadedConfig& loaded,
                                  std::span<const std::string> cut_after, int rank, int ranks) {
  StageChoice choice;
  choice.shape = PipelineShapeOf(loaded.config);
  const int stages = choice.shape.stages;
  if (stages == 1 || ranks == 1) {
    choice.shape.stages = 1;
    return choice;
  }
  if (ranks % stages != 0) {
    return loaded.source.Error(
        fmt::format("{}.stages", kPipeline),
        fmt::format("{} are no multiple of {}: start {} or {}, or take other stages",
                    Counted(ranks, "rank"), Counted(stages, "stage"),
                    std::max(ranks / stages, 1) * stages, (ranks / stages + 1) * stages));
  }
  choice.stage = rank % stages;
  choice.replica = rank / stages;
  choice.replicas = ranks / stages;
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded, /*allocate=*/false));
  const Graph& graph = model->graph();
  const PipelineConfig& config = loaded.config.dist().model_parallel().pipeline();
  std::vector<std::string> names(cut_after.begin(), cut_after.end());
  if (names.empty()) names.assign(config.cut_after().begin(), config.cut_after().end());
  RT_CHECK(std::ssize(names) + 1 == stages, "DecideCut comes before the run");
  RT_ASSIGN_OR_RETURN(const std::vector<int> last, CutNodes(loaded, graph, names));
  int first = 0;
  for (int i = 0; i < stages; ++i) {
    choice.first_layers.push_back(graph.nodes()[first].name);
    choice.last_layers.push_back(graph.nodes()[last[i]].name);
    if (i == choice.stage) choice.request = {.first = first, .last = last[i]};
    first = last[i] + 1;
  }
  if (config.wire() == PipelineConfig::BFLOAT16) choice.request.wire = BlobType::kBf16;
  return choice;
}

}  // namespace ringtail
