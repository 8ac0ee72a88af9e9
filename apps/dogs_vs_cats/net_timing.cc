#include "apps/dogs_vs_cats/net_timing.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/algorithm_choices.h"
#include "apps/config/run_precision.h"
#include "apps/memory_advice.h"
#include "apps/random_batch.h"
#include "core/machine/memory_limit.h"
#include "core/median.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "layers/net/net.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr int64_t kWarmUpSteps = 2;
constexpr int64_t kLayerSteps = 5;      // at most; layers vary less than steps
constexpr double kLearningRate = 1e-3;  // small, so that values stay finite and normal

// A net and everything else that a step needs.
class StepTimer {
 public:
  static StatusOr<std::unique_ptr<StepTimer>> Create(const LoadedConfig& loaded,
                                                     const TimingOptions& options) {
    auto timer = std::make_unique<StepTimer>();
    RT_ASSIGN_OR_RETURN(timer->model_, CreateModelAt(options.image_size, loaded));
    timer->model_->Initialize(loaded.config.train().seed());
    RT_ASSIGN_OR_RETURN(timer->optimizer_,
                        Optimizer::Create(loaded.config.optim(), &timer->model_->arena()));
    RT_ASSIGN_OR_RETURN(
        timer->net_,
        AdviseOnMemory(Net::Create(timer->model_.get(), {.batch = options.batch,
                                                         .image_size = options.image_size,
                                                         .algorithms = &ProgramAlgorithms()}),
                       "a lower --batch or --image-size"));
    timer->batch_ =
        std::make_unique<RandomBatch>(*timer->model_, options.batch, options.image_size);
    return timer;
  }

  void Step() {
    StepContext context;
    context.step = static_cast<uint64_t>(step_);
    const LossResult loss = net_->Forward(batch_->view(), context);
    net_->Backward();
    optimizer_->Step(step_++, kLearningRate, 1.0 / static_cast<double>(loss.count));
  }

  std::vector<double> TimeSteps(int64_t count) {
    std::vector<double> seconds;
    for (int64_t i = 0; i < count; ++i) {
      const Stopwatch watch;
      Step();
      seconds.push_back(watch.Seconds());
    }
    return seconds;
  }

  // Median seconds per layer: forward, backward.
  std::vector<std::pair<double, double>> TimeLayers(int64_t steps) {
    const size_t layers = net_->layers().size();
    std::vector<std::vector<double>> forward(layers), backward(layers);
    net_->set_timer([&](int layer, bool is_backward, double seconds) {
      (is_backward ? backward : forward)[layer].push_back(seconds);
    });
    for (int64_t i = 0; i < steps; ++i) Step();
    net_->set_timer({});
    std::vector<std::pair<double, double>> medians;
    for (size_t i = 0; i < layers; ++i)
      medians.emplace_back(Median(forward[i]), Median(backward[i]));
    return medians;
  }

  const Net& net() const { return *net_; }
  const Model& model() const { return *model_; }

 private:
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Net> net_;
  std::unique_ptr<RandomBatch> batch_;
  int64_t step_ = 0;
};

double GflopPerSecond(double flops, double seconds) {
  return seconds > 0 ? flops / seconds / kGiga : 0;
}

std::vector<LayerTiming> LayerTimings(const Net& net,
                                      const std::vector<std::pair<double, double>>& seconds) {
  double all = 0;
  for (const auto& [forward, backward] : seconds) all += forward + backward;
  std::vector<LayerTiming> timings;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const LayerInfo& info = net.layers()[i];
    const auto [forward, backward] = seconds[i];
    timings.push_back({.info = info,
                       .forward_ms = forward * kMsPerSecond,
                       .backward_ms = backward * kMsPerSecond,
                       .forward_gflop_per_s = GflopPerSecond(info.forward_flops, forward),
                       .backward_gflop_per_s = GflopPerSecond(info.backward_flops, backward),
                       .share = (forward + backward) / all});
  }
  return timings;
}

}  // namespace

StatusOr<NetTiming> TimeNet(const LoadedConfig& loaded, const TimingOptions& options) {
  RT_ASSIGN_OR_RETURN(const auto timer, StepTimer::Create(loaded, options));
  timer->TimeSteps(kWarmUpSteps);
  const std::vector<double> steps = timer->TimeSteps(options.iterations);
  NetTiming timing;
  const double median = Median(steps);
  timing.step_ms = median * kMsPerSecond;
  timing.fastest_step_ms = *std::min_element(steps.begin(), steps.end()) * kMsPerSecond;
  timing.slowest_step_ms = *std::max_element(steps.begin(), steps.end()) * kMsPerSecond;
  timing.images_per_s = static_cast<double>(options.batch) / median;
  timing.peak_memory_mib = static_cast<double>(PeakMemoryBytes()) / kBytesPerMib;
  timing.planned_memory_mib = static_cast<double>(timer->net().memory_bytes()) / kBytesPerMib;
  timing.parameters = timer->model().arena().num_parameters();
  double flops = 0;
  for (const LayerInfo& info : timer->net().layers()) {
    flops += info.forward_flops + info.backward_flops;
  }
  timing.gflop_per_s = GflopPerSecond(flops, median);
  timing.precision = DescribeRunPrecision(loaded.config.train(), timer->net().layers());
  timing.layers =
      LayerTimings(timer->net(), timer->TimeLayers(std::min(options.iterations, kLayerSteps)));
  return timing;
}

}  // namespace ringtail
