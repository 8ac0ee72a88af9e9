#include "dist/compression/carry_over.h"

#include <algorithm>

#include "core/kernels/add.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

void Add(std::span<const float> addend, std::span<float> sum) {
  RT_KERNEL(AddFloats)(addend.data(), std::ssize(addend), sum.data());
}

}  // namespace

StatusOr<std::vector<bool>> CarryOver::Orphaned(Communicator* ranks, Slice slice) const {
  std::vector<double> squares(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].scheme.memory != MemoryKind::kNone) continue;
    const std::span<const float> values = (memories_->*slice)(i);
    if (!values.empty()) squares[i] = SumOfSquares(values);
  }
  RT_RETURN_IF_ERROR(ranks->AllReduce(std::span(squares)));
  std::vector<bool> orphaned;
  orphaned.reserve(squares.size());
  for (const double square : squares) orphaned.push_back(square > 0);
  return orphaned;
}

Status CarryOver::Start(Communicator* ranks) {
  RT_ASSIGN_OR_RETURN(pending_, Orphaned(ranks, &LayerMemories::residual));
  return memories_->keeps_momentum() ? MoveMomentum(ranks) : OkStatus();
}

Status CarryOver::MoveMomentum(Communicator* ranks) {
  RT_ASSIGN_OR_RETURN(const std::vector<bool> orphaned, Orphaned(ranks, &LayerMemories::momentum));
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!orphaned[i]) continue;
    const std::span<float> own = memories_->momentum(i);
    RT_RETURN_IF_ERROR(ranks->AllReduce(own));
    Add(own, memories_->dense_momentum(i));
    std::ranges::fill(own, 0.0F);
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].scheme.memory != MemoryKind::kMomentum) continue;
    const std::span<float> shared = memories_->dense_momentum(i);
    if (ranks->rank() == 0) Add(shared, memories_->momentum(i));
    std::ranges::fill(shared, 0.0F);
  }
  return OkStatus();
}

Status CarryOver::AddResiduals(Communicator* ranks, std::span<const size_t> parameters) {
  for (const size_t i : parameters) {
    if (!pending_[i]) continue;
    pending_[i] = false;
    const std::span<float> residual = memories_->residual(i);
    RT_RETURN_IF_ERROR(ranks->AllReduce(residual));
    Add(residual, arena_->parameters()[i].grad());
    std::ranges::fill(residual, 0.0F);
  }
  return OkStatus();
}

}  // namespace ringtail
