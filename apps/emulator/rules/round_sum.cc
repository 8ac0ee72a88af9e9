#include "apps/emulator/rules/round_sum.h"

#include <algorithm>

#include "core/kernels/add.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

constexpr int64_t kGrain = 1 << 16;  // floats per thread at least

void Copy(std::span<const float> from, std::span<float> to) {
  ParallelFor(std::ssize(from), kGrain, [&](int64_t begin, int64_t end) {
    std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
  });
}

void AddTo(std::span<const float> from, std::span<float> to) {
  ParallelFor(std::ssize(from), kGrain, [&](int64_t begin, int64_t end) {
    RT_KERNEL(AddFloats)(from.data() + begin, end - begin, to.data() + begin);
  });
}

}  // namespace

void RoundSum::Add(LocalRound* taken) {
  const std::span<const float> differences = taken->differences()->grads();
  const std::span<const float> statistics = taken->statistics();
  if (workers_++ > 0) {
    AddTo(differences, differences_.floats());
    AddTo(statistics, statistics_.floats());
    return;
  }
  if (differences_.size_bytes() != differences.size_bytes()) {
    differences_ = AlignedBuffer(differences.size_bytes());
    statistics_ = AlignedBuffer(statistics.size_bytes());
  }
  Copy(differences, differences_.floats());
  Copy(statistics, statistics_.floats());
}

void RoundSum::CopyTo(LocalRound* taken) const {
  Copy(differences_.floats(), taken->differences()->grads());
  Copy(statistics_.floats(), taken->statistics());
}

}  // namespace ringtail
