#include "apps/trainer/pipeline/pipeline_pass.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "apps/algorithm_choices.h"
#include "apps/memory_advice.h"
#include "core/check.h"
#include "core/stopwatch.h"
#include "core/trace.h"

namespace ringtail {

PipelinePass::PipelinePass(Model* model, const GradientPass::Options& options,
                           const StageChoice& choice)
    : model_(model),
      options_(options),
      choice_(choice),
      sum_(model->arena(), options.parts > 1 || options.most_batches > 1) {}

StatusOr<std::unique_ptr<PipelinePass>> PipelinePass::Create(Model* model,
                                                             const GradientPass::Options& options,
                                                             const StageChoice& choice,
                                                             StageLink* link) {
  RT_CHECK(options.parts == choice.shape.micro_batches && options.batch % options.parts == 0,
           "micro-batches divide the batch");
  std::unique_ptr<PipelinePass> pass(new PipelinePass(model, options, choice));
  const int64_t rows = options.batch / options.parts;
  const int alive = MostAlive(choice.shape, choice.stage);
  const auto work = alive > 1 ? std::make_shared<WorkMemory>() : nullptr;
  for (int i = 0; i < alive; ++i) {
    RT_ASSIGN_OR_RETURN(auto net,
                        AdviseOnMemory(Net::Create(model, {.batch = rows,
                                                           .image_size = options.image_size,
                                                           .training = true,
                                                           .work = work,
                                                           .algorithms = &ProgramAlgorithms()}),
                                       "more stages (dist.model_parallel.pipeline.stages), a lower "
                                       "train.batch, or a higher train.accumulation"));
    pass->nets_.push_back(std::move(net));
  }
  pass->alive_.resize(pass->nets_.size());
  if (link != nullptr) {
    pass->messages_ =
        std::make_unique<StageMessages>(link, pass->nets_.front()->boundaries(), rows);
  }
  return pass;
}

StepContext PipelinePass::Context(const StepBatch& place, int micro_batch) {
  StepContext context = ContextOfPart(options_, place, micro_batch);
  context.boundary = &BatchOf(micro_batch)->boundary;
  return context;
}

// In the first stage; in others labels come with the activations.
void PipelinePass::TakeImages(const BatchView& batch, int micro_batch) {
  if (!choice_.is_first()) return;
  const int64_t row_floats = model_->input_channels() * options_.image_size * options_.image_size;
  BatchOf(micro_batch)->Take(RowsOfPart(batch, micro_batch, options_.parts, row_floats));
}

void PipelinePass::Forward(const StepBatch& place, int micro_batch) {
  const Stopwatch watch;
  const std::string name = fmt::format("F{}", micro_batch);
  const ScopedSpan span(name, "pipeline");
  const LossResult loss =
      NetOf(micro_batch)->Forward(BatchOf(micro_batch)->View(), Context(place, micro_batch));
  total_ += loss;
  times_.forward_seconds += watch.Seconds();
}

void PipelinePass::Backward(const StepBatch& place, int micro_batch, GradientListener* listener) {
  const bool first = place.index == 0 && micro_batch == 0;
  const bool last = place.index + 1 == place.count && micro_batch + 1 == options_.parts;
  if (last && listener != nullptr) listener->OnLoss(total_);
  const Stopwatch watch;
  const std::string name = fmt::format("B{}", micro_batch);
  const ScopedSpan span(name, "pipeline");
  NetOf(micro_batch)->Backward([&](const Parameter& p) {
    sum_.Add(p, first, last);
    if (last && listener != nullptr) listener->OnReady(p);
  });
  times_.backward_seconds += watch.Seconds();
}

StatusOr<LossResult> PipelinePass::Run(const BatchView& batch, const StepBatch& place,
                                       GradientListener* listener) {
  RT_CHECK(messages_ != nullptr, "a pass that is to run has neighbours");
  if (place.index == 0) {
    total_ = {};
    times_ = {};
  }
  messages_->Expect(options_.parts, options_.parts);
  for (const StageOperation& operation : StageOperations(choice_.shape, choice_.stage)) {
    const int m = operation.micro_batch;
    const bool forward = operation.pass == PassKind::kForward;
    if (forward) TakeImages(batch, m);
    RT_RETURN_IF_ERROR(messages_->Before(operation, BatchOf(m)));
    forward ? Forward(place, m) : Backward(place, m, listener);
    messages_->After(operation, *BatchOf(m));
  }
  return total_;
}

// Gradients are sums over micro-batches: those of each are computed again. Every stage makes all of
// these passes, whatever it finds; without the other replicas, which may find it in another layer.
StatusOr<std::string> PipelinePass::DescribeNonFinite(const BatchView& batch,
                                                      const StepBatch& place) {
  const std::span<float> buffers = model_->arena().buffer_values();
  const std::vector<float> saved(buffers.begin(), buffers.end());
  Status found = OkStatus();
  Net* const net = NetOf(0);
  for (int m = 0; m < options_.parts; ++m) {
    const StageOperation forward{PassKind::kForward, m}, backward{PassKind::kBackward, m};
    StageBatch* const own = BatchOf(m);
    StepContext context = Context(place, m);
    context.ranks = nullptr;
    messages_->Expect(2, 1);
    TakeImages(batch, m);
    RT_RETURN_IF_ERROR(messages_->Before(forward, own));
    net->Forward(own->View(), context);
    messages_->After(forward, *own);
    RT_RETURN_IF_ERROR(messages_->Before(backward, own));
    net->Backward();
    messages_->After(backward, *own);
    std::ranges::copy(saved, buffers.begin());
    RT_RETURN_IF_ERROR(messages_->Before(forward, own));
    const Status here = net->FindNonFinite(own->View(), context);
    messages_->After(forward, *own);
    if (found.ok()) found = here;
  }
  return std::string(found.message());
}

}  // namespace ringtail
