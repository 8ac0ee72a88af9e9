#include "apps/emulator/rules/round_sum.h"

#include <algorithm>
#include <utility>

#include "core/add_to.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr int64_t kGrain = 1 << 16;  // floats per thread at least

void Copy(std::span<const float> from, std::span<float> to) {
  ParallelFor(std::ssize(from), kGrain, [&](int64_t begin, int64_t end) {
    std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
  });
}

void Add(std::span<const float> from, bool more, AlignedBuffer* sum) {
  if (more) return AddTo(from, sum->floats());
  if (sum->size_bytes() != from.size_bytes()) *sum = AlignedBuffer(from.size_bytes());
  Copy(from, sum->floats());
}

}  // namespace

void RoundSum::AddDifferences(LocalRound* taken) {
  Add(taken->differences()->grads(), std::exchange(differences_added_, true), &differences_);
}

void RoundSum::AddStatistics(LocalRound* taken) {
  Add(taken->statistics(), std::exchange(statistics_added_, true), &statistics_);
}

void RoundSum::CopyTo(LocalRound* taken) const {
  Copy(differences_.floats(), taken->differences()->grads());
  Copy(statistics_.floats(), taken->statistics());
}

}  // namespace ringtail
