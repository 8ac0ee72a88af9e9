#include "optim/weight_average.h"

#include <algorithm>

#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr int64_t kMinFloatsPerThread = 1 << 16;

AlignedBuffer Copy(std::span<const float> block) {
  AlignedBuffer copy(block.size_bytes());
  std::copy(block.begin(), block.end(), copy.floats().begin());
  return copy;
}

void MoveTowards(std::span<const float> block, float fraction, std::span<float> average_block) {
  ParallelFor(static_cast<int64_t>(block.size()), kMinFloatsPerThread,
              [&](int64_t begin, int64_t end) {
                const float* __restrict value = block.data();
                float* __restrict average = average_block.data();
#pragma omp simd
                for (int64_t i = begin; i < end; ++i)
                  average[i] += fraction * (value[i] - average[i]);
              });
}

}  // namespace

WeightAverage::WeightAverage(double decay, ParameterArena* arena)
    : decay_(decay),
      arena_(arena),
      values_(Copy(arena->values())),
      buffers_(Copy(arena->buffer_values())) {}

void WeightAverage::Update(int64_t step, int64_t steps) {
  RT_CHECK(!swapped_, "the arena holds the averages; Swap() back before the next Update()");
  double kept = 1;  // of the old average
  for (int64_t s = step - steps + 1; s <= step; ++s) {
    // Smaller decay in the first steps, so that the average does not keep the initial weights.
    const double t = static_cast<double>(s);
    kept *= std::min(decay_, (1 + t) / (10 + t));
  }
  const float fraction = static_cast<float>(1 - kept);
  MoveTowards(arena_->values(), fraction, values_.floats());
  MoveTowards(arena_->buffer_values(), fraction, buffers_.floats());
}

void WeightAverage::Swap() {
  arena_->SwapValues(&values_, &buffers_);
  swapped_ = !swapped_;
}

}  // namespace ringtail
