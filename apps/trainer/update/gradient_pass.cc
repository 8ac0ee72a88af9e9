#include "apps/trainer/update/gradient_pass.h"

#include <algorithm>

#include "apps/algorithm_choices.h"
#include "apps/memory_advice.h"
#include "core/check.h"
#include "core/stopwatch.h"
#include "core/trace.h"

namespace ringtail {

StepContext ContextOfPart(const GradientPass::Options& options, const StepBatch& place,
                          int64_t part) {
  StepContext context;
  context.seed = options.seed;
  context.step = static_cast<uint64_t>(place.step);
  context.ranks = options.ranks;
  context.shards = options.shards;
  context.statistics_steps = place.statistics_steps;
  context.first_sample = place.index * options.global_batch + options.first_sample +
                         place.first_row + part * (options.batch / options.parts);
  return context;
}

StatusOr<std::unique_ptr<GradientPass>> GradientPass::Create(Model* model, const Options& options) {
  RT_CHECK(options.parts >= 1 && options.batch % options.parts == 0,
           "the parts must divide the batch");
  RT_ASSIGN_OR_RETURN(auto net,
                      AdviseOnMemory(Net::Create(model, {.batch = options.batch / options.parts,
                                                         .image_size = options.image_size,
                                                         .training = true,
                                                         .algorithms = &ProgramAlgorithms()}),
                                     "a lower train.batch or --local-batch, a higher "
                                     "train.accumulation, or smaller images (data.image_size, "
                                     "train.phase)"));
  return std::unique_ptr<GradientPass>(new GradientPass(model, options, std::move(net)));
}

GradientPass::GradientPass(Model* model, const Options& options, std::unique_ptr<Net> net)
    : model_(model),
      options_(options),
      net_(std::move(net)),
      sum_(model->arena(), options.parts > 1 || options.most_batches > 1) {
  if (options_.global_batch == 0) options_.global_batch = options_.batch;
}

BatchView GradientPass::Part(const BatchView& batch, int64_t part) const {
  return RowsOfPart(batch, part, options_.parts,
                    model_->input_channels() * options_.image_size * options_.image_size);
}

LossResult GradientPass::Run(const BatchView& batch, const StepBatch& place,
                             GradientListener* listener) {
  RT_CHECK(place.index < place.count && place.count <= options_.most_batches,
           "the step must have at most most_batches batches");
  if (place.index == 0) {
    total_ = {};
    times_ = {};
  }
  for (int64_t part = 0; part < options_.parts; ++part) {
    const bool first = place.index == 0 && part == 0;
    const bool last = place.index + 1 == place.count && part + 1 == options_.parts;
    Stopwatch watch;
    LossResult loss;
    {
      const ScopedSpan span("forward", "step");
      loss = net_->Forward(Part(batch, part), ContextOfPart(options_, place, part));
    }
    times_.forward_seconds += watch.Restart();
    total_ += loss;
    if (last && listener != nullptr) listener->OnLoss(total_);
    const ScopedSpan span("backward", "step");
    net_->Backward([&](const Parameter& p) {
      sum_.Add(p, first, last);
      if (last && listener != nullptr) listener->OnReady(p);
    });
    times_.backward_seconds += watch.Restart();
  }
  return total_;
}

std::string GradientPass::DescribeNonFinite(const BatchView& batch, const StepBatch& place) {
  const std::span<float> buffers = model_->arena().buffer_values();
  const std::vector<float> saved(buffers.begin(), buffers.end());
  Status found = OkStatus();
  for (int64_t part = 0; part < options_.parts && found.ok(); ++part) {
    // The gradients are a sum over parts or ranks: compute those of this part again, without the
    // other ranks, which may find the cause in another layer.
    StepContext context = ContextOfPart(options_, place, part);
    context.ranks = nullptr;
    AloneShards alone(options_.shard);
    if (context.shards != nullptr) context.shards = &alone;
    net_->Forward(Part(batch, part), context);
    net_->Backward();
    std::copy(saved.begin(), saved.end(), buffers.begin());
    found = net_->FindNonFinite(Part(batch, part), context);
  }
  return found.message();
}

}  // namespace ringtail
