#include "apps/plan/measure_step.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/algorithm_choices.h"
#include "apps/memory_advice.h"
#include "apps/plan/step_images.h"
#include "core/machine/wake_delay.h"
#include "core/median.h"
#include "layers/net/net.h"

namespace ringtail {
namespace {

StatusOr<std::unique_ptr<Net>> CreateNet(Model* model, int64_t batch, int64_t image_size,
                                         const MeasureFactsOptions& options) {
  std::unique_ptr<Net> net;
  const auto create = [&]() -> Status {
    RT_ASSIGN_OR_RETURN(net,
                        AdviseOnMemory(Net::Create(model, {.batch = batch,
                                                           .image_size = image_size,
                                                           .algorithms = &ProgramAlgorithms()}),
                                       "a lower --part-batch or --image-size"));
    return OkStatus();
  };
  RT_RETURN_IF_ERROR(options.set_up ? options.set_up(batch, image_size, create) : create());
  return net;
}

// Seconds of a step's parts.
struct StepParts {
  double forward = 0, backward = 0, update = 0;
  UpdateParts of_update;
  std::vector<double> finished;  // since backward began, by parameter
};

// Of `part`, a function of a step or a member.
template <typename Part>
double MedianOf(const std::vector<StepParts>& steps, const Part& part) {
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const StepParts& step : steps) seconds.push_back(std::invoke(part, step));
  return Median(std::move(seconds));
}

// Of an update that takes `update_s`, by their shares of all of the time: under a limit on the processor
// a part that is shorter than the limit's period is not stopped at all, or for the rest of a period,
// and its median would say that it never is.
UpdateParts PartsOf(const std::vector<StepParts>& steps, double update_s) {
  UpdateParts sum;
  double updates = 0;
  for (const StepParts& step : steps) {
    sum.norm_s += step.of_update.norm_s;
    sum.optimizer_s += step.of_update.optimizer_s;
    sum.average_s += step.of_update.average_s;
    updates += step.update;
  }
  const double factor = update_s / updates;
  return {.norm_s = sum.norm_s * factor,
          .optimizer_s = sum.optimizer_s * factor,
          .average_s = sum.average_s * factor};
}

StatusOr<double> DeviationOf(const std::vector<StepParts>& steps,
                             const MeasureFactsOptions& options) {
  std::vector<double> whole;
  whole.reserve(steps.size());
  for (const StepParts& s : steps) whole.push_back(s.forward + s.backward + s.update);
  return options.deviation ? options.deviation(whole) : RelativeDeviation(whole);
}

StepParts TimeStep(Net* net, int64_t step, const BatchView& images, int64_t batch,
                   UpdateOfStep* weights, ComputeWatch* watch) {
  StepParts seconds;
  watch->Start();
  net->Forward(images, {.step = static_cast<uint64_t>(step)});
  seconds.forward = watch->Restart();
  net->Backward([&](const Parameter&) { seconds.finished.push_back(watch->Seconds()); });
  const double backward = watch->Seconds();
  seconds.backward = watch->Restart();
  for (double& finished : seconds.finished) finished *= seconds.backward / backward;
  seconds.of_update = weights->Update(step, batch);
  const double update = watch->Seconds();
  seconds.update = watch->Restart();
  for (double* part :
       {&seconds.of_update.norm_s, &seconds.of_update.optimizer_s, &seconds.of_update.average_s}) {
    *part *= seconds.update / update;
  }
  return seconds;
}

}  // namespace

StatusOr<MeasuredStep> MeasureStep(Model* model, const RunConfig& config, int64_t batch,
                                   int64_t image_size, const MeasureFactsOptions& options,
                                   UpdateOfStep* weights) {
  RT_ASSIGN_OR_RETURN(const auto net, CreateNet(model, batch, image_size, options));
  RT_ASSIGN_OR_RETURN(const auto images, StepImages::Create(*model, config,
                                                            {.batch = batch,
                                                             .image_size = image_size,
                                                             .data = options.data,
                                                             .ranks_here = options.ranks_here}));
  ComputeWatch watch(CoresOfThisRank());
  const WakeDelay wake_delay;
  std::vector<StepParts> steps;
  for (int64_t i = 0; i < kWarmUpSteps + options.steps; ++i) {
    RT_ASSIGN_OR_RETURN(const BatchView view, images->Next());
    StepParts step = TimeStep(net.get(), i, view, batch, weights, &watch);
    if (i >= kWarmUpSteps) steps.push_back(std::move(step));
  }
  MeasuredStep measured{.update_s = MedianOf(steps, &StepParts::update),
                        .wake_delay_s = wake_delay.Mean()};
  RT_ASSIGN_OR_RETURN(measured.deviation, DeviationOf(steps, options));
  measured.parts = PartsOf(steps, measured.update_s);
  StepFacts& facts = measured.facts;
  facts.set_batch(batch);
  facts.set_forward_s(MedianOf(steps, &StepParts::forward));
  facts.set_backward_s(MedianOf(steps, &StepParts::backward));
  double before = 0;  // medians of several measurements need not be in order
  for (size_t p = 0; p < model->arena().parameters().size(); ++p) {
    const double finished =
        MedianOf(steps, [p](const StepParts& step) { return step.finished[p]; });
    before = std::clamp(finished, before, facts.backward_s());
    facts.add_finish_s(before);
  }
  return measured;
}

}  // namespace ringtail
