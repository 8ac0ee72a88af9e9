#include "apps/emulator/shared_net.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace ringtail {

StatusOr<SharedNet::PhaseNet*> SharedNet::PhaseOf(int64_t image_size) {
  PhaseNet* const phase = &phases_[image_size];
  if (phase->batches != nullptr) return phase;
  LoaderOptions options;
  options.mode = LoaderMode::kTrain;
  options.batch = plan_->growth_run().images_per_batch;
  options.image_size = image_size;
  options.seed = config_->train().seed();
  RT_ASSIGN_OR_RETURN(auto loader, DataLoader::Create(data_->dataset.get(), data_->split.train,
                                                      config_->data(), options));
  phase->batches = std::make_unique<BatchSource>(
      std::move(loader), model_->input_channels() * image_size * image_size);
  return phase;
}

// Rows must begin at multiples of 64 bytes.
StatusOr<GradientPass*> SharedNet::PassOf(PhaseNet* phase, int64_t image_size, int64_t rows) {
  std::unique_ptr<GradientPass>& pass = phase->passes[rows];
  if (pass != nullptr) return pass.get();
  const int64_t global_batch = plan_->growth_run().images_per_batch;
  if (rows < global_batch && image_size % 4 != 0) {
    return InvalidArgument(
        fmt::format("images of {0} pixels cannot be divided among workers; take a multiple of 4 "
                    "(data.image_size, train.phase)",
                    image_size));
  }
  RT_ASSIGN_OR_RETURN(pass,
                      GradientPass::Create(model_, {.batch = rows,
                                                    .parts = config_->train().accumulation(),
                                                    .most_batches = plan_->stages().back().batches,
                                                    .image_size = image_size,
                                                    .seed = config_->train().seed(),
                                                    .global_batch = global_batch}));
  return pass.get();
}

StatusOr<LossResult> SharedNet::Compute(int64_t step, ElementRange rows, GradientListener* listener,
                                        int64_t statistics_steps) {
  const int64_t image_size = plan_->PhaseAt(step).image_size;
  RT_ASSIGN_OR_RETURN(PhaseNet* const phase, PhaseOf(image_size));
  RT_ASSIGN_OR_RETURN(GradientPass* const pass, PassOf(phase, image_size, rows.count));
  phase->last_step = std::max(phase->last_step, step);
  const int64_t first = plan_->BatchesBefore(step), count = plan_->BatchesOf(step);
  LossResult loss;
  for (int64_t index = 0; index < count; ++index) {
    RT_ASSIGN_OR_RETURN(const BatchView batch, phase->batches->Rows(first + index, rows));
    loss = pass->Run(batch,
                     {.step = step,
                      .index = index,
                      .count = count,
                      .first_row = rows.offset,
                      .statistics_steps = statistics_steps},
                     listener);
  }
  times_.forward_seconds += pass->times().forward_seconds;
  times_.backward_seconds += pass->times().backward_seconds;
  return loss;
}

void SharedNet::Forget(int64_t step) {
  const int64_t image_size = plan_->PhaseAt(step).image_size;
  std::erase_if(phases_, [&](const auto& phase) {
    return phase.first != image_size && phase.second.last_step < step;
  });
  const auto current = phases_.find(image_size);
  if (current == phases_.end() || current->second.batches == nullptr) return;
  current->second.batches->Forget(plan_->BatchesBefore(step));
}

StatusOr<std::span<const LayerInfo>> SharedNet::Layers(int64_t rows) {
  const int64_t image_size = plan_->PhaseAt(0).image_size;
  RT_ASSIGN_OR_RETURN(PhaseNet* const phase, PhaseOf(image_size));
  RT_ASSIGN_OR_RETURN(GradientPass* const pass, PassOf(phase, image_size, rows));
  return pass->net().layers();
}

}  // namespace ringtail
