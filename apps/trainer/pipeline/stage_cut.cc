#include "apps/trainer/pipeline/stage_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>

#include "apps/algorithm_choices.h"
#include "apps/pipeline/pipeline_problem.h"
#include "apps/pipeline/pipeline_summary.h"
#include "apps/random_batch.h"
#include "apps/trainer/decide_precision.h"
#include "apps/trainer/pipeline/stage_choice.h"
#include "core/logging.h"
#include "core/machine/cgroup.h"
#include "core/machine/memory_limit.h"
#include "core/median.h"
#include "dist/config_check.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

constexpr int kTimedSteps = 3;

// Median seconds by layer.
StatusOr<NodeSeconds> MeasureLayers(const LoadedConfig& loaded, const StepShape& step) {
  RT_ASSIGN_OR_RETURN(const auto model, CreateModelAt(step.image_size, loaded));
  model->Initialize(loaded.config.train().seed());
  RT_ASSIGN_OR_RETURN(const auto net,
                      Net::Create(model.get(), {.batch = step.images,
                                                .image_size = step.image_size,
                                                .algorithms = &ProgramAlgorithms()}));
  const RandomBatch images(*model, step.images, step.image_size);
  const size_t nodes = net->layers().size();
  std::vector<std::vector<double>> forward(nodes), backward(nodes);
  net->Forward(images.view(), {});
  net->Backward();
  net->set_timer([&](int node, bool is_backward, double seconds) {
    (is_backward ? backward : forward)[node].push_back(seconds);
  });
  for (int i = 0; i < kTimedSteps; ++i) {
    net->Forward(images.view(), {});
    net->Backward();
  }
  NodeSeconds seconds;
  const auto median = [](std::vector<double>& times) {
    return times.empty() ? 0 : Median(std::move(times));
  };
  for (auto& times : forward) seconds.forward.push_back(median(times));
  for (auto& times : backward) seconds.backward.push_back(median(times));
  return seconds;
}

// The control groups of memory that this process is in.
std::string MemoryGroup() {
  std::string group;
  ForEachCgroup("", "memory",
                [&](CgroupVersion, const std::string& folder) { group += folder + '\n'; });
  return group;
}

// All ranks: what each rank of rank 0's host may take. A limit of a control group is for its ranks.
StatusOr<int64_t> MemoryOfARank(TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> groups, world->GatherText(MemoryGroup()));
  const Topology& topology = world->topology();
  const int64_t available = AvailableMemoryBytes();
  const bool limited = CgroupMemoryLeft() == available;
  int64_t ranks = 0;
  for (int rank = 0; rank < world->size(); ++rank) {
    const bool here = topology.host_of_rank[rank] == topology.host_of_rank[world->rank()];
    ranks += here && (!limited || groups[rank] == groups[world->rank()]) ? 1 : 0;
  }
  return available / ranks;
}

StatusOr<PipelinePartition> Partition(PartitionProblem problem, int64_t memory) {
  problem.memory_limit_bytes = memory;
  auto within = PartitionLayers(problem);
  if (within.status().code() != StatusCode::kResourceExhausted) return within;
  LogWarning(fmt::format("{}; the network is cut where it is fastest", within.status().message()));
  problem.memory_limit_bytes = 0;
  return PartitionLayers(problem);
}

// On rank 0.
StatusOr<std::vector<std::string>> MeasureCut(const LoadedConfig& loaded, int64_t memory,
                                              TrainingWorld* world) {
  const ScopedPhase measuring(world->progress(), Phase::kSetUp);
  const StepShape step = StepOfRun(loaded.config);
  RT_ASSIGN_OR_RETURN(const auto model, CreateModelAt(step.image_size, loaded, /*allocate=*/false));
  RT_ASSIGN_OR_RETURN(const auto net, Net::Create(model.get(), {.batch = step.images,
                                                                .image_size = step.image_size,
                                                                .plan_only = true}));
  StatusOr<NodeSeconds> seconds = MeasureLayers(loaded, step);
  const bool measured = seconds.ok();
  if (!measured && seconds.status().code() != StatusCode::kResourceExhausted) {
    return Status(seconds.status());
  }
  if (!measured) {
    LogInfo(
        fmt::format("layers are not measured ({}): stages are even in floating-point operations",
                    seconds.status().message()));
    seconds = FlopsAsSeconds(*net);
  }
  RT_ASSIGN_OR_RETURN(const int copies, CountWeightCopies(loaded.config.optim(),
                                                          loaded.config.train().accumulation()));
  NetPipeline pipeline =
      MakeNetPipeline(*model, *net, *seconds, PipelineShapeOf(loaded.config), copies);
  if (measured) pipeline.problem.link = StageLinkModel(*world);
  pipeline.problem.fewer_bytes_within = kFewerBytesWithin;
  const auto partition = Partition(pipeline.problem, memory);
  if (!partition.ok()) {
    return loaded.source.Error("dist.model_parallel.pipeline.stages", partition.status().message());
  }
  if (measured) {
    LogInfo(
        fmt::format("cut by the times of layers: a step is to take {:.1f} ms, of which ranks wait "
                    "for {:.1f} %",
                    1e3 * partition->price.step_s, 100 * partition->price.MeanBubble()));
  }
  std::vector<std::string> names;
  const std::vector<int> last = pipeline.LastNodes(*partition);
  for (size_t i = 0; i + 1 < last.size(); ++i) {
    names.push_back(model->graph().nodes()[last[i]].name);
  }
  return names;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

LinkModel StageLinkModel(const TrainingWorld& world) {
  const NetworkModel& network = world.network();
  return world.topology().hosts() > 1 ? network.between_hosts : network.within_host;
}

StatusOr<std::vector<std::string>> DecideCut(const LoadedConfig& loaded, TrainingWorld* world) {
  if (!UsesPipeline(loaded.config.dist()) || world->alone()) return std::vector<std::string>();
  const auto& named = loaded.config.dist().model_parallel().pipeline().cut_after();
  if (!named.empty()) return std::vector<std::string>(named.begin(), named.end());
  RT_ASSIGN_OR_RETURN(const int64_t memory, MemoryOfARank(world));
  std::string text;
  if (world->leads()) {
    RT_ASSIGN_OR_RETURN(const std::vector<std::string> names, MeasureCut(loaded, memory, world));
    for (const std::string& name : names) text += name + '\n';
  }
  RT_ASSIGN_OR_RETURN(text, world->ShareText(std::move(text)));
  return Lines(text);
}

}  // namespace ringtail
