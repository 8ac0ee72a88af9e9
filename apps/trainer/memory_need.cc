#include "apps/trainer/memory_need.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/pipeline/pipeline_problem.h"
#include "core/machine/memory_limit.h"
#include "layers/net/graph.h"
#include "layers/net/net.h"
#include "layers/net/stage_memory.h"

namespace ringtail {
namespace {

constexpr double kMib = 1 << 20;

int64_t ActivationBytes(const Net& net, int alive) {
  const NetOptions& options = net.options();
  const int last = static_cast<int>(net.needs().size()) - 1;
  return PlanStageMemory(net.needs(), 0, last,
                         {.recompute = options.recompute, .defer = options.defer})
      .BytesWith(alive);
}

}  // namespace

StatusOr<TrainingMemory> MemoryToTrain(const LoadedConfig& loaded, Model* model, int64_t images,
                                       int alive) {
  RT_ASSIGN_OR_RETURN(const int copies, CountWeightCopies(loaded.config.optim(),
                                                          loaded.config.train().accumulation()));
  int64_t trained = 0, fixed = 0;
  for (int node = 0; node < model->graph().size(); ++node) {
    for (const Parameter* p : model->parameters(node)) {
      const auto bytes = p->elements * static_cast<int64_t>(sizeof(float));
      (p->is_buffer || p->is_fixed ? fixed : trained) += bytes;
    }
  }
  TrainingMemory memory{.weight_bytes = WeightBytes(trained, fixed, copies)};
  if (images == 0) return memory;
  for (const int64_t image_size : TrainingImageSizes(loaded.config)) {
    RT_ASSIGN_OR_RETURN(
        const auto net,
        Net::Create(model, {.batch = images, .image_size = image_size, .plan_only = true}));
    memory.activation_bytes = std::max(memory.activation_bytes, ActivationBytes(*net, alive));
  }
  return memory;
}

Status CheckMemoryToTrain(const LoadedConfig& loaded, Model* model, int64_t images, int alive) {
  RT_ASSIGN_OR_RETURN(const TrainingMemory memory, MemoryToTrain(loaded, model, images, alive));
  const int64_t available = AvailableMemoryBytes();
  if (memory.sum() <= available) return OkStatus();
  return ResourceExhausted(
      fmt::format("training needs {:.0f} MiB of memory ({:.0f} for weights, gradients and "
                  "optimizer state, {:.0f} for "
                  "activations), and {:.0f} MiB are available; take a higher train.accumulation or "
                  "smaller images, or "
                  "more ranks that have layers of their own (dist.model_parallel.pipeline)",
                  memory.sum() / kMib, memory.weight_bytes / kMib, memory.activation_bytes / kMib,
                  available / kMib));
}

}  // namespace ringtail
