#include "apps/emulator/rules/virtual_worker.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/parameter_specs.h"
#include "optim/gradient_norm.h"

namespace ringtail {

StatusOr<std::unique_ptr<VirtualWorker>> VirtualWorker::Create(const OptimConfig& optim,
                                                               ParameterArena* model) {
  RT_ASSIGN_OR_RETURN(
      auto own, ParameterArena::Create(SpecsOf(model->parameters()), SpecsOf(model->buffers())));
  std::ranges::copy(model->values(), own->values().begin());
  std::ranges::copy(model->buffer_values(), own->buffer_values().begin());
  std::unique_ptr<VirtualWorker> worker(new VirtualWorker(std::move(own), model));
  RT_ASSIGN_OR_RETURN(worker->optimizer_, Optimizer::Create(optim, model));
  return worker;
}

void VirtualWorker::CopyState(Optimizer* from) {
  const auto own = optimizer_->state(), other = from->state();
  for (size_t i = 0; i < own.size(); ++i) {
    std::ranges::copy(other[i].values, own[i].values.begin());
  }
}

bool VirtualWorker::Update(const LossResult& loss, int64_t step, double learning_rate,
                           double clip_norm) {
  const double mean = 1.0 / static_cast<double>(std::max<int64_t>(loss.count, 1));
  const double norm = GradientNorm(*model_, mean);
  if (!std::isfinite(loss.loss_sum) || !std::isfinite(norm)) return false;
  optimizer_->Step(step, learning_rate, mean * ClipFactor(norm, clip_norm));
  return true;
}

}  // namespace ringtail
