#include "apps/trainer/pipeline/stage_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/config/run_config.h"
#include "apps/trainer/pipeline/stage_cut.h"
#include "core/check.h"
#include "core/logging.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "layers/net/cut_points.h"
#include "layers/net/graph.h"

namespace ringtail {
namespace {

// Of a blob on the wire.
int64_t BytesOf(const CutPoint& point, std::optional<BlobType> wire) {
  const bool rounds = wire && point.blob.type == BlobType::kF32;
  return rounds ? point.blob.As(*wire).bytes() : point.blob.bytes();
}

}  // namespace

StatusOr<StageTraffic> TrafficOf(const LoadedConfig& loaded, const StageChoice& choice,
                                 int64_t images, int64_t image_size, const TrainingWorld& world) {
  RT_ASSIGN_OR_RETURN(const auto model, CreateModelAt(image_size, loaded, /*allocate=*/false));
  RT_ASSIGN_OR_RETURN(
      const auto net,
      Net::Create(model.get(), {.batch = images, .image_size = image_size, .plan_only = true}));
  StageTraffic traffic{.image_size = image_size, .boundaries = {}, .link = StageLinkModel(world)};
  for (const CutPoint& point : FindCutPoints(*model, *net)) {
    const std::string& name = model->graph().nodes()[point.node].name;
    if (std::ranges::count(choice.last_layers, name) == 0) continue;
    const int64_t bytes = BytesOf(point, choice.request.wire);
    traffic.boundaries.push_back(
        {.activation_bytes = bytes, .gradient_bytes = point.has_gradient ? bytes : 0});
  }
  RT_CHECK(std::ssize(traffic.boundaries) + 1 == choice.shape.stages, "one boundary for each cut");
  return traffic;
}

// The first stage ends last: its time is that of the pass.
std::string CompareWithSchedule(const PipelineShape& shape, const StageTraffic& traffic,
                                int64_t steps, const StageTimes& times) {
  PipelineCosts costs{.stages = {}, .boundaries = traffic.boundaries, .link = traffic.link};
  double waits = 0;
  for (int i = 0; i < shape.stages; ++i) {
    costs.stages.push_back({.forward_s = times.forward_s[i] / shape.micro_batches,
                            .backward_s = times.backward_s[i] / shape.micro_batches});
    const double pass = times.forward_s[i] + times.backward_s[i] + times.waited_s[i];
    waits += times.waited_s[i] / pass / shape.stages;
  }
  const double measured = times.forward_s[0] + times.backward_s[0] + times.waited_s[0];
  const ScheduleCost price = CostOfSchedule(shape, costs);
  return fmt::format(
      "{}: forward and backward took {:.1f} ms each; the schedule, with the measured times of "
      "stages: "
      "{:.1f} ms ({:+.0f} %); ranks wait for {:.1f} % of it (the schedule: {:.1f} %; equal stages: "
      "{:.1f} %)",
      Counted(steps, "step"), measured * kMsPerSecond, price.step_s * kMsPerSecond,
      (price.step_s / measured - 1) * kPercent, waits * kPercent, price.MeanBubble() * kPercent,
      IdealBubble(shape) * kPercent);
}

Status StageReport::Watch(const Generation& generation) {
  const StageChoice& choice = generation.run->stage;
  if (!choice.divides()) return OkStatus();
  const int64_t image_size = generation.plan.PhaseAt(generation.step()).image_size;
  RT_ASSIGN_OR_RETURN(
      traffic_, TrafficOf(*generation.run->options.loaded, choice,
                          generation.division.own.batch / choice.shape.micro_batches, image_size,
                          *generation.world));
  watches_ = true;
  shape_ = choice.shape;
  BeginAnew();
  return OkStatus();
}

void StageReport::BeginAnew() {
  steps_ = 0;
  const std::vector<double> zeros(shape_.stages, 0);
  sums_ = {.forward_s = zeros, .backward_s = zeros, .waited_s = zeros};
}

void StageReport::OnBatchGrowth(const std::string& what) {
  next_->OnBatchGrowth(what);
  watches_ = watches_ && steps_ == 0;
}

void StageReport::OnStep(const Metrics& step, const TrainingPlan& plan) {
  next_->OnStep(step, plan);
  if (!watches_ || std::ssize(step.ranks) < shape_.stages) return;
  if (plan.PhaseAt(step.step - 1).image_size != traffic_.image_size) {
    watches_ = false;  // messages have other sizes
    return;
  }
  if (++steps_ <= kWarmUpSteps) return;
  for (int i = 0; i < shape_.stages; ++i) {
    const RankMetrics& rank = step.ranks[i];
    const double scale = 1 / kMsPerSecond / static_cast<double>(kComparedSteps);
    sums_.forward_s[i] += rank.forward_ms * scale;
    sums_.backward_s[i] += rank.backward_ms * scale;
    sums_.waited_s[i] += rank.exposed_comm_ms * scale;
  }
  if (steps_ < kWarmUpSteps + kComparedSteps) return;
  watches_ = false;
  LogInfo(CompareWithSchedule(shape_, traffic_, kComparedSteps, sums_));
}

}  // namespace ringtail
