// GradientSum: adds up the gradients and running statistics of several workers that compute one
// after the other on one arena, as an allreduce does among ranks.
//
//   Begin  worker 0 computes  worker 1 computes  ...  Finish
//          sum = g_0          sum = sum + g_1         arena's grads = the sum, statistics = the mean
//
// Each parameter is added as soon as backward has made it, while it is in the cache. With one worker
// nothing is copied, and gradients and statistics stay what they are.
// Thread-safety: the trainer thread. Memory: a gradient block, if there are several workers.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_GRADIENT_SUM_H_
#define RINGTAIL_APPS_EMULATOR_RULES_GRADIENT_SUM_H_

#include <cstddef>
#include <vector>

#include "apps/trainer/update/gradient_pass.h"
#include "core/aligned_buffer.h"
#include "core/parameter.h"

namespace ringtail {

class GradientSum : public GradientListener {
 public:
  explicit GradientSum(ParameterArena* arena) : arena_(arena) {}

  // `takes_statistics`: whether the statistics are to take in this step's batches; of one worker they
  // always do.
  void Begin(size_t workers, bool takes_statistics);
  // Before a worker computes: the statistics are those before the step. With `own` its gradients are
  // kept there, and not added up.
  void BeginWorker(ParameterArena* own = nullptr);
  void OnLoss(const LossResult& /*loss*/) override {}
  void OnReady(const Parameter& parameter) override;
  // After it has computed; `weight`: its share of the images.
  void EndWorker(double weight);
  // The statistics are those before the step.
  void Undo();

 private:
  ParameterArena* const arena_;
  AlignedBuffer sum_;
  std::vector<float> statistics_before_, statistics_;
  size_t workers_ = 0, done_ = 0;
  bool takes_statistics_ = true;
  ParameterArena* own_ = nullptr;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_GRADIENT_SUM_H_
