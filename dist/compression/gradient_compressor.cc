#include "dist/compression/gradient_compressor.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "core/sum_of_squares.h"
#include "dist/compression/kernels/sums.h"
#include "dist/compression/memory/error_feedback.h"

namespace ringtail {
namespace {

bool Uses(std::span<const GradientCompressor::Layer> layers, MemoryKind memory) {
  return std::ranges::any_of(layers, [&](const auto& l) { return l.scheme.memory == memory; });
}

double Dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

void Add(std::span<const float> what, std::span<float> sum) {
  RT_KERNEL(AddTo)(what.data(), std::ssize(what), sum.data());
}

// Deep Gradient Compression's memory in the place of error feedback.
class DgcMemory : public GradientMemory {
 public:
  DgcMemory(const MomentumMemory& memory, double clip_norm)
      : memory_(memory), clip_norm_(clip_norm) {}

  void Encode(const Codec& codec, const GradientShape& shape, const CodecMoment& moment,
              std::span<const float> gradient, int64_t /*offset*/,
              std::span<std::byte> payload) override {
    memory_.Add(gradient, clip_norm_);  // a whole one, as it checks
    codec.Encode(shape, moment, memory_.residual(), payload);
    memory_.Sent(dynamic_cast<const DgcCodec&>(codec), shape, moment, payload);
  }
  std::span<const float> Add(std::span<const float> /*gradient*/) override {
    RT_CHECK(false, "its codec makes payloads");
  }
  void Sent(std::span<const float> /*decoded*/, float /*scale*/) override {
    RT_CHECK(false, "its codec makes payloads");
  }
  double Norm() const override { return std::sqrt(SumOfSquares(memory_.residual())); }

 private:
  MomentumMemory memory_;
  const double clip_norm_;
};

}  // namespace

GradientCompressor::GradientCompressor(const ParameterArena* arena,
                                       std::span<const GradientBucket> buckets,
                                       std::vector<Layer> layers, const Options& options,
                                       bool takes_over)
    : arena_(arena), options_(options), layers_(std::move(layers)) {
  RT_CHECK(layers_.size() == arena->parameters().size(), "every parameter has a scheme");
  for (const Parameter& p : arena->parameters()) shapes_.push_back(GradientShapeOf(p.spec));
  MakeMemories(takes_over);
  size_t parameter = 0;
  for (const GradientBucket& from : buckets) {
    Bucket& bucket = buckets_.emplace_back(Bucket{.range = from.range});
    for (size_t i = 0; i < from.parameters; ++i) Place(parameter++, &bucket);
  }
}

void GradientCompressor::MakeMemories(bool takes_over) {
  const size_t bytes = arena_->grads().size_bytes();
  const bool feedback = Uses(layers_, MemoryKind::kErrorFeedback);
  const bool momentum = options_.keeps_momentum;
  RT_CHECK(momentum || !Uses(layers_, MemoryKind::kMomentum), "momentum is kept for all layers");
  if (feedback || momentum || takes_over) unsent_ = AlignedBuffer(bytes);
  if (momentum) momentum_ = AlignedBuffer(bytes);
  if (momentum) dense_momentum_ = AlignedBuffer(bytes);
  if (std::ranges::any_of(layers_, [](const Layer& l) {
        return l.sharded && l.scheme.memory == MemoryKind::kErrorFeedback;
      })) {
    unsent_sums_ = AlignedBuffer(bytes);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    RT_CHECK(!layers_[i].sharded || layers_[i].scheme.can_shard(), "a part is no gradient to it");
    auto& memory = memories_.emplace_back(std::make_unique<NoMemory>());
    auto& sum_memory = sum_memories_.emplace_back(std::make_unique<NoMemory>());
    switch (layers_[i].scheme.memory) {
      case MemoryKind::kNone:
        break;
      case MemoryKind::kErrorFeedback:
        memory = std::make_unique<ErrorFeedback>(Slice(unsent_, i));
        if (layers_[i].sharded) {
          const ElementRange own = EvenPart(shapes_[i].elements(), options_.world, options_.rank);
          sum_memory = std::make_unique<ErrorFeedback>(
              Slice(unsent_sums_, i).subspan(own.offset, own.count));
        }
        break;
      case MemoryKind::kMomentum:
        memory = std::make_unique<DgcMemory>(
            MomentumMemory(options_.momentum, Slice(momentum_, i), Slice(unsent_, i)),
            options_.clip_norm);
        break;
    }
  }
}

void GradientCompressor::Place(size_t parameter, Bucket* bucket) {
  const Layer& layer = layers_[parameter];
  const Parameter& p = arena_->parameters()[parameter];
  bucket->parameters.push_back(parameter);
  bucket->compressed |= !layer.scheme.dense();
  const CodecMoment moment = {.seed = options_.seed,
                              .parameter = static_cast<uint32_t>(parameter),
                              .rank = static_cast<uint32_t>(options_.rank)};
  if (layer.scheme.codec == nullptr) {
    bucket->summed.push_back({.sketch = layer.scheme.sketch.get(),
                              .moment = moment,
                              .memory = memories_[parameter].get(),
                              .gradient = p.grad()});
    return;
  }
  (layer.sharded ? bucket->sharded : bucket->gathered)
      .push_back({.name = p.spec.name,
                  .codec = layer.scheme.codec.get(),
                  .shape = shapes_[parameter],
                  .moment = moment,
                  .memory = memories_[parameter].get(),
                  .sum_memory = sum_memories_[parameter].get(),
                  .gradient = p.grad()});
}

std::span<float> GradientCompressor::Slice(const AlignedBuffer& block, size_t parameter) const {
  const Parameter& p = arena_->parameters()[parameter];
  return block.floats().subspan(p.offset, p.elements);
}

bool GradientCompressor::HasMomentum() const { return dense_momentum_.size_bytes() > 0; }

void GradientCompressor::BeginStep(int64_t step, double epoch, int64_t batches) {
  step_ = step;
  epoch_ = epoch;
  batches_ = static_cast<double>(batches);
}

void GradientCompressor::SetMoments(Bucket* bucket) const {
  const auto set = [&](auto& gradients) {
    for (auto& gradient : gradients) {
      gradient.moment.step = static_cast<uint64_t>(step_);
      gradient.moment.epoch = std::max(epoch_ - options_.dense_epochs, 0.0);
      gradient.moment.batches = batches_;
    }
  };
  set(bucket->summed);
  set(bucket->gathered);
  set(bucket->sharded);
}

bool GradientCompressor::IsGuarded(size_t bucket) const {
  const int64_t every = options_.guard_every_steps;
  return every > 0 && step_ % every == 0 &&
         static_cast<size_t>(step_ / every) % buckets_.size() == bucket;
}

Status GradientCompressor::Reduce(Communicator* ranks, size_t index, std::span<float> gradients) {
  in_step_ = true;
  Bucket& bucket = buckets_[index];
  const bool compressed = bucket.compressed && epoch_ >= options_.dense_epochs;
  if (!compressed) {
    RT_RETURN_IF_ERROR(ranks->AllReduce(gradients));
  } else {
    SetMoments(&bucket);
    std::vector<float> dense;
    if (IsGuarded(index)) {
      dense.assign(gradients.begin(), gradients.end());
      RT_RETURN_IF_ERROR(ranks->AllReduce(std::span(dense)));
    }
    RT_RETURN_IF_ERROR(sums_.Run(ranks, bucket.summed));
    if (!bucket.gathered.empty()) {
      RT_RETURN_IF_ERROR(payloads_.Gather(ranks, bucket.gathered));
    }
    if (!bucket.sharded.empty()) RT_RETURN_IF_ERROR(payloads_.Sharded(ranks, bucket.sharded));
    if (!dense.empty()) Read(bucket, dense);
  }
  if (HasMomentum()) {
    for (const size_t parameter : bucket.parameters) AddMomentum(parameter);
  }
  // After momentum: what DGC has not sent yet has had its own.
  for (const size_t parameter : std::exchange(bucket.late, {})) {
    RT_RETURN_IF_ERROR(AddLate(ranks, parameter));
  }
  return OkStatus();
}

StatusOr<std::vector<size_t>> GradientCompressor::LeftOver(Communicator* ranks,
                                                           const AlignedBuffer& block) const {
  std::vector<double> squares(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool sends_all = layers_[i].scheme.memory == MemoryKind::kNone;
    if (sends_all && block.size_bytes() > 0) squares[i] = SumOfSquares(Slice(block, i));
  }
  RT_RETURN_IF_ERROR(ranks->AllReduce(std::span(squares)));
  std::vector<size_t> left;
  for (size_t i = 0; i < squares.size(); ++i) {
    if (squares[i] > 0) left.push_back(i);
  }
  return left;
}

Status GradientCompressor::TakeOver(Communicator* ranks) {
  RT_ASSIGN_OR_RETURN(const std::vector<size_t> late, LeftOver(ranks, unsent_));
  for (Bucket& bucket : buckets_) {
    std::ranges::set_intersection(bucket.parameters, late, std::back_inserter(bucket.late));
  }
  if (!HasMomentum()) return OkStatus();
  RT_ASSIGN_OR_RETURN(const std::vector<size_t> moved, LeftOver(ranks, momentum_));
  for (const size_t i : moved) {
    const std::span<float> own = Slice(momentum_, i);
    RT_RETURN_IF_ERROR(ranks->AllReduce(own));
    Add(own, Slice(dense_momentum_, i));
    std::ranges::fill(own, 0.0F);
  }
  // The other way round: one rank sends what all had.
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].scheme.memory != MemoryKind::kMomentum) continue;
    const std::span<float> shared = Slice(dense_momentum_, i);
    if (options_.rank == 0) Add(shared, Slice(momentum_, i));
    std::ranges::fill(shared, 0.0F);
  }
  return OkStatus();
}

Status GradientCompressor::AddLate(Communicator* ranks, size_t parameter) {
  const std::span<float> unsent = Slice(unsent_, parameter);
  RT_RETURN_IF_ERROR(ranks->AllReduce(unsent));
  Add(unsent, arena_->parameters()[parameter].grad());
  std::ranges::fill(unsent, 0.0F);
  return OkStatus();
}

// To the sum of a gradient that MomentumMemory has not given its momentum before.
void GradientCompressor::AddMomentum(size_t parameter) {
  if (layers_[parameter].scheme.memory == MemoryKind::kMomentum) return;
  const std::span<float> sum = arena_->parameters()[parameter].grad();
  // Such a gradient has no place in momentum_ of its own: that is free, and zero before and after.
  MomentumMemory memory(options_.momentum, Slice(dense_momentum_, parameter),
                        Slice(momentum_, parameter));
  memory.Add(sum);
  std::ranges::copy(memory.residual(), sum.begin());
  memory.SentAll();
}

void GradientCompressor::Read(const Bucket& bucket, std::span<const float> dense) {
  for (const size_t i : bucket.parameters) {
    if (layers_[i].scheme.dense()) continue;
    const Parameter& p = arena_->parameters()[i];
    const auto wanted = dense.subspan(p.offset - bucket.range.offset, p.elements);
    const double norm = std::sqrt(SumOfSquares(wanted)), sent = std::sqrt(SumOfSquares(p.grad()));
    if (norm == 0) continue;  // it has no direction that could be lost
    readings_.push_back({.parameter = i,
                         .cosine = sent == 0 ? 0 : Dot(p.grad(), wanted) / norm / sent,
                         .unsent = memories_[i]->Norm() * options_.world / norm});
  }
}

CodingTimes GradientCompressor::TakeTimes() { return std::exchange(payloads_.times(), {}); }

std::vector<DirectionReading> GradientCompressor::TakeReadings() {
  return std::exchange(readings_, {});
}

std::vector<GradientCompressor::StateBlock> GradientCompressor::state() {
  std::vector<StateBlock> blocks;
  const auto add = [&](const char* name, const AlignedBuffer& block, bool own) {
    if (block.size_bytes() > 0) blocks.push_back({name, block.floats(), own});
  };
  add(kUnsent, unsent_, true);
  add(kUnsentSums, unsent_sums_, true);
  add("momentum", momentum_, true);
  add("dense_momentum", dense_momentum_, false);
  for (size_t i = 0; i < layers_.size(); ++i) {
    Sketch* const sketch = layers_[i].scheme.sketch.get();
    if (sketch == nullptr || sketch->state().empty()) continue;
    blocks.push_back(
        {"sketch." + arena_->parameters()[i].spec.name, sketch->state(), /*own=*/false});
  }
  return blocks;
}

}  // namespace ringtail
