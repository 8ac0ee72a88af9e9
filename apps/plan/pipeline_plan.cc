#include "apps/plan/pipeline_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "apps/pipeline/pipeline_problem.h"
#include "apps/pipeline/pipeline_summary.h"
#include "apps/plan/dropped_ways.h"
#include "apps/trainer/pipeline/stage_choice.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/planner/image_sizes.h"
#include "dist/planner/step_timetable.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

// `flops` as parts of `seconds`.
void Scale(double seconds, std::vector<double>* flops) {
  const double sum = std::accumulate(flops->begin(), flops->end(), 0.0);
  for (double& value : *flops) value *= sum > 0 ? seconds / sum : 0;
}

bool AreOf(const PlannerFacts& facts, const Model& model) {
  int64_t elements = 0;
  for (const Parameter& p : ParametersOf(facts)) elements += p.elements;
  return elements == model.CountParameters();
}

int64_t BusiestBytes(const PipelinePartition& partition, int micro_batches) {
  int64_t most = 0;
  for (const BoundaryCost& boundary : partition.costs.boundaries) {
    most = std::max(most, boundary.activation_bytes + boundary.gradient_bytes);
  }
  return most * micro_batches;
}

// Of a run of `config`. The layers at which it is cut are left to what the run measures.
std::vector<std::string> PipelineSettings(const PipelinePlan& plan, const RunConfig& config) {
  std::vector<std::string> settings = SettingsWithoutOtherWays(config, {});
  settings.push_back(fmt::format("dist.model_parallel.pipeline.stages={}", plan.shape.stages));
  settings.push_back(fmt::format("train.accumulation={}", plan.shape.micro_batches));
  settings.push_back(fmt::format("train.batch={}", plan.micro_batch * plan.shape.micro_batches));
  return settings;
}

// Facts of one size of images.
StatusOr<std::optional<PipelinePlan>> PlanOfSize(const LoadedConfig& loaded,
                                                 const PlannerFacts& facts,
                                                 const NetworkFacts& network, int64_t batch) {
  const std::optional<PipelinePlan> none;
  const int64_t image_size =
      facts.image_size() > 0 ? facts.image_size() : TrainingImageSizes(loaded.config).front();
  PipelinePlan plan;
  plan.shape = PipelineShapeOf(loaded.config);
  plan.shape.stages = network.hosts * network.ranks_per_host;
  if (plan.shape.stages < 2) return none;
  RT_ASSIGN_OR_RETURN(plan.shape.micro_batches,
                      ChooseMicroBatches(0, batch, /*accumulation=*/1, plan.shape.stages));
  plan.micro_batch = batch / plan.shape.micro_batches;
  RT_ASSIGN_OR_RETURN(const auto model, CreateModelAt(image_size, loaded, /*allocate=*/false));
  if (!AreOf(facts, *model)) return none;
  const auto created = Net::Create(
      model.get(), {.batch = plan.micro_batch, .image_size = image_size, .plan_only = true});
  if (created.status().code() == StatusCode::kInvalidArgument) return none;  // too few images
  RT_RETURN_IF_ERROR(created.status());
  const Net& net = **created;
  // The images are dealt to no one else: the first stage loads them all.
  const ComputeTimes times =
      StepTimetable(facts, network.cores_per_rank()).TimesAt(plan.micro_batch, /*ranks=*/1);
  NodeSeconds seconds = FlopsAsSeconds(net);
  Scale(times.forward, &seconds.forward);
  Scale(times.earlier_backward + times.backward, &seconds.backward);
  NetPipeline pipeline = MakeNetPipeline(*model, net, seconds, plan.shape, 0);
  pipeline.problem.link =
      network.hosts > 1 ? network.links.between_hosts : network.links.within_host;
  pipeline.problem.fewer_bytes_within = kFewerBytesWithin;
  const auto partition = PartitionLayers(pipeline.problem);
  if (!partition.ok()) return none;  // too few places to cut
  const std::vector<int> last = pipeline.LastNodes(*partition);
  for (size_t i = 0; i + 1 < last.size(); ++i) {
    plan.cut_after.push_back(model->graph().nodes()[last[i]].name);
  }
  // Each stage updates its own weights; the largest may have nearly all of them.
  plan.step_s = partition->price.step_s + times.update;
  plan.waits = partition->price.MeanBubble();
  plan.images_per_s = static_cast<double>(batch) / plan.step_s;
  plan.sent_bytes = BusiestBytes(*partition, plan.shape.micro_batches);
  return std::optional(std::move(plan));
}

}  // namespace

StatusOr<std::optional<PipelinePlan>> PlanPipeline(const LoadedConfig& loaded,
                                                   const PlannerFacts& facts,
                                                   const NetworkFacts& network, int64_t batch) {
  std::optional<PipelinePlan> shown;
  double largest_share = 0, step_s = 0, waiting_s = 0, sent_bytes = 0;
  for (const auto& [share, of_size] : SizesOf(facts)) {
    RT_ASSIGN_OR_RETURN(std::optional<PipelinePlan> plan,
                        PlanOfSize(loaded, of_size, network, batch));
    if (!plan) return plan;
    step_s += share * plan->step_s;
    waiting_s += share * plan->step_s * plan->waits;
    sent_bytes += share * static_cast<double>(plan->sent_bytes);
    if (share > largest_share) {
      largest_share = share;
      shown = std::move(plan);
    }
  }
  shown->step_s = step_s;
  shown->waits = waiting_s / step_s;
  shown->images_per_s = static_cast<double>(batch) / step_s;
  shown->sent_bytes = std::llround(sent_bytes);
  shown->settings = PipelineSettings(*shown, loaded.config);
  return shown;
}

std::string DescribePipeline(const PipelinePlan& plan, double best_images_per_s) {
  const double gain = plan.images_per_s / best_images_per_s;
  return fmt::format(
      "as a pipeline of {}, {} micro-batches of {} (estimated): {:.1f} images/s, {:.1f} ms a step, "
      "of "
      "which ranks wait for {:.0f} %; {:.2f} MB a step over the busiest boundary; {}",
      Counted(plan.shape.stages, "stage"), plan.shape.micro_batches,
      Counted(plan.micro_batch, "image"), plan.images_per_s, plan.step_s * kMsPerSecond,
      plan.waits * kPercent, static_cast<double>(plan.sent_bytes) / kMega,
      gain > 1
          ? fmt::format("{:.2f} times the above: it pays (--set {})", gain,
                        fmt::join(plan.settings, " --set "))
          : fmt::format("{:.2f} times the above: it pays only where a network does not fit into "
                        "one machine",
                        gain));
}

}  // namespace ringtail
