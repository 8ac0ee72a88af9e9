#include "apps/plan/step_images.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/trainer/update/batch_view.h"
#include "core/machine/thread_budget.h"
#include "core/parallel_for.h"
#include "data/worker_pool.h"

namespace ringtail {
namespace {

// Clocks of threads are read one after the other: of a short time more than all may seem taken.
constexpr double kLeastShare = 0.05;

}  // namespace

bool InputSharesCores(int ranks_here) {
  const double share = static_cast<double>(AffinityCores()) / ranks_here;
  return std::min(share, CgroupQuota()) <= NumComputeThreads();
}

StatusOr<std::unique_ptr<StepImages>> StepImages::Create(const Model& model,
                                                         const RunConfig& config,
                                                         const StepImagesOptions& options) {
  auto images = std::make_unique<StepImages>();
  const bool loads = options.data != nullptr && InputSharesCores(options.ranks_here) &&
                     std::ssize(options.data->split.train) >= options.batch;
  if (!loads) {
    images->random_.emplace(model, options.batch, options.image_size);
    return images;
  }
  RT_RETURN_IF_ERROR(options.data->CheckClasses(model.num_classes()));
  RT_ASSIGN_OR_RETURN(images->loader_, DataLoader::Create(options.data->dataset.get(),
                                                          options.data->split.train, config.data(),
                                                          {.batch = options.batch,
                                                           .image_size = options.image_size,
                                                           .seed = config.train().seed()}));
  return images;
}

StatusOr<BatchView> StepImages::Next() {
  if (random_) return random_->view();
  RT_ASSIGN_OR_RETURN(const LoadedBatch batch, loader_->Next());
  return ViewOf(batch);
}

ComputeWatch::ComputeWatch(double cores) : cores_(cores), input_(kLoaderThreads) {}

void ComputeWatch::Start() {
  input_.Find();
  input_.Ran();
  watch_.Restart();
}

double ComputeWatch::Restart() {
  const double taken = input_.Ran() / cores_, seconds = watch_.Restart();
  return std::max(seconds - taken, kLeastShare * seconds);
}

}  // namespace ringtail
