#include "dist/compression/compressed_reducer.h"

#include <algorithm>
#include <utility>

#include "dist/compression/scheme_choice.h"

namespace ringtail {

CompressedReducer::CompressedReducer(const ParameterArena* arena,
                                     std::span<const GradientBucket> buckets,
                                     std::vector<CompressedLayer> layers, const Options& options)
    : arena_(arena),
      options_(options),
      layers_(std::move(layers)),
      memories_(arena, layers_, options.memory),
      carry_over_(arena, layers_, &memories_),
      guard_(options.guard_every_steps, buckets.size()) {
  size_t parameter = 0;
  for (const GradientBucket& from : buckets) {
    Bucket& bucket = buckets_.emplace_back(Bucket{.range = from.range});
    for (size_t i = 0; i < from.parameters; ++i) Place(parameter++, &bucket);
  }
}

void CompressedReducer::Place(size_t parameter, Bucket* bucket) {
  const CompressedLayer& layer = layers_[parameter];
  const Parameter& p = arena_->parameters()[parameter];
  bucket->parameters.push_back(parameter);
  bucket->compressed |= !layer.scheme.dense();
  const EncodeContext context = {.shape = GradientShapeOf(p.spec),
                                 .seed = options_.seed,
                                 .parameter = static_cast<uint32_t>(parameter),
                                 .rank = static_cast<uint32_t>(options_.memory.rank)};
  if (layer.scheme.codec == nullptr) {
    bucket->summed.push_back({.sketch = layer.scheme.sketch.get(),
                              .context = context,
                              .memory = memories_.of_sketch(parameter),
                              .gradient = p.grad()});
    return;
  }
  (layer.sharded ? bucket->sharded : bucket->gathered)
      .push_back({.name = p.spec.name,
                  .codec = layer.scheme.codec.get(),
                  .context = context,
                  .memory = memories_.of_codec(parameter),
                  .sum_memory = memories_.of_sum(parameter),
                  .gradient = p.grad()});
}

void CompressedReducer::BeginStep(int64_t step, double epoch, int64_t batches) {
  step_ = step;
  epoch_ = epoch;
  batches_ = static_cast<double>(batches);
}

void WaitInMemory(const SummedGradient& g) { g.memory->Add(g.gradient); }
void WaitInMemory(const CodedGradient& g) { g.memory->Wait(g.gradient); }

template <typename Gradient>
std::span<Gradient> CompressedReducer::TakeDue(std::span<const Gradient> from,
                                               std::vector<Gradient>* due) const {
  due->clear();
  for (const Gradient& gradient : from) {
    if (!IsDue(gradient.context.parameter)) {
      WaitInMemory(gradient);
      std::ranges::fill(gradient.gradient, 0.0F);
      continue;
    }
    EncodeContext& context = due->emplace_back(gradient).context;
    context.step = static_cast<uint64_t>(step_);
    context.epoch = std::max(epoch_ - options_.dense_epochs, 0.0);
    // A payload has the batches of all the steps that it speaks for.
    context.batches = batches_ * static_cast<double>(layers_[context.parameter].scheme.every_steps);
  }
  return *due;
}

Status CompressedReducer::Reduce(Communicator* ranks, size_t index, std::span<float> gradients) {
  in_step_ = true;
  const Bucket& bucket = buckets_[index];
  if (bucket.compressed && epoch_ >= options_.dense_epochs) {
    RT_RETURN_IF_ERROR(ReduceCompressed(ranks, index, gradients));
  } else {
    RT_RETURN_IF_ERROR(ranks->AllReduce(gradients));
  }
  if (memories_.keeps_momentum()) {
    for (const size_t parameter : bucket.parameters) memories_.ApplyDenseMomentum(parameter);
  }
  // After momentum, because the residual of a layer with momentum has had its own.
  return carry_over_.AddResiduals(ranks, bucket.parameters);
}

Status CompressedReducer::ReduceCompressed(Communicator* ranks, size_t index,
                                           std::span<float> gradients) {
  const Bucket& bucket = buckets_[index];
  std::vector<float> dense;
  if (guard_.Guards(step_, index)) {
    dense.assign(gradients.begin(), gradients.end());
    RT_RETURN_IF_ERROR(ranks->AllReduce(std::span(dense)));
  }
  RT_RETURN_IF_ERROR(sums_.Run(ranks, TakeDue<SummedGradient>(bucket.summed, &due_sums_)));
  const auto gathered = TakeDue<CodedGradient>(bucket.gathered, &due_payloads_);
  if (!gathered.empty()) RT_RETURN_IF_ERROR(payloads_.Gather(ranks, gathered));
  const auto sharded = TakeDue<CodedGradient>(bucket.sharded, &due_payloads_);
  if (!sharded.empty()) RT_RETURN_IF_ERROR(payloads_.Sharded(ranks, sharded));
  if (!dense.empty()) Compare(bucket, dense);
  return OkStatus();
}

void CompressedReducer::Compare(const Bucket& bucket, std::span<const float> dense) {
  for (const size_t i : bucket.parameters) {
    const LayerScheme& scheme = layers_[i].scheme;
    // What has waited is the sum of several steps, and has another direction than this one.
    if (scheme.dense() || scheme.every_steps > 1) continue;
    const Parameter& p = arena_->parameters()[i];
    const std::span<const float> residual =
        scheme.memory != MemoryKind::kNone ? memories_.residual(i) : std::span<float>();
    guard_.Compare(i, dense.subspan(p.offset - bucket.range.offset, p.elements), p.grad(), residual,
                   options_.memory.world);
  }
}

std::vector<StateBlock> CompressedReducer::state() const {
  std::vector<StateBlock> blocks = memories_.state();
  for (size_t i = 0; i < layers_.size(); ++i) {
    Sketch* const sketch = layers_[i].scheme.sketch.get();
    if (sketch == nullptr || sketch->state().empty()) continue;
    blocks.push_back(
        {StateBlock::kSketch + arena_->parameters()[i].spec.name, sketch->state(), /*own=*/false});
  }
  return blocks;
}

CompressedReducer::Options ReducerOptions(const CompressionConfig& config, int rank, int world,
                                          double samples) {
  CompressedReducer::Options options{.dense_epochs = config.dense_epochs(),
                                     .guard_every_steps = config.guard_every_steps(),
                                     .memory = {.rank = rank, .world = world}};
  const DgcScheme* const dgc = FindDgc(config);
  if (dgc == nullptr) return options;
  options.memory.keeps_momentum = true;
  MomentumMemoryOptions& momentum = options.memory.momentum;
  momentum.momentum = static_cast<float>(dgc->momentum());
  momentum.nesterov = dgc->nesterov();
  if (dgc->clip_norm() > 0) {
    momentum.max_norm = MomentumMemory::LocalNorm(dgc->clip_norm() * samples, world);
  }
  return options;
}

}  // namespace ringtail
