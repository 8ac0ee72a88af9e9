// A run so small that a test can afford many: 48 drawn images, a net of two convolutions with all
// kinds of state (batch norm, dropout, momentum, averaging), two image sizes.
// 40 images train in 5 steps per epoch, 8 validate.
#ifndef RINGTAIL_TESTS_APPS_TINY_RUN_H_
#define RINGTAIL_TESTS_APPS_TINY_RUN_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/trainer/train_to_end.h"
#include "core/status.h"

namespace ringtail {

inline constexpr int64_t kTinyStepsPerEpoch = 5;

// Drawn once per process, and removed at its end.
const std::string& TinyImages();

// The config as text, without data.path.
std::string TinyConfigText();
LoadedConfig TinyConfig(const std::vector<std::string>& overrides = {});

// Calls `fn` after every step with the number of steps done.
class StepHook : public TrainingObserver {
 public:
  explicit StepHook(std::function<void(int64_t)> fn) : fn_(std::move(fn)) {}
  void OnStep(const Metrics& step, const TrainingPlan& /*plan*/) override {
    losses.push_back(step.loss);
    if (fn_) fn_(step.step);
  }
  void OnEvaluation(const Metrics& evaluation, bool /*best_so_far*/) override {
    evaluations.push_back(evaluation);
  }
  void OnBatchGrowth(const std::string& what) override { growths.push_back(what); }
  std::vector<double> losses;
  std::vector<std::string> growths;
  std::vector<Metrics> evaluations;

 private:
  std::function<void(int64_t)> fn_;
};

// Trains in this process; `resume`: from the newest checkpoint in `output`.
StatusOr<TrainingOutcome> TrainTiny(const LoadedConfig& loaded, const std::string& output,
                                    bool resume = false, StepHook* hook = nullptr);

// All tensors of a safetensors file, as bytes by name.
std::map<std::string, std::vector<float>> ReadTensors(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_TINY_RUN_H_
