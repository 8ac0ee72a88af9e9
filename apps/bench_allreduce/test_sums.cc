#include "apps/bench_allreduce/test_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "dist/collectives/plan.h"

namespace ringtail {
namespace {
constexpr int64_t kPeriod = 1021;
}  // namespace

TestSums::TestSums(int rank, int world) : rank_(rank), world_(world), own_(kPeriod), sum_(kPeriod) {
  for (int64_t i = 0; i < kPeriod; ++i) {
    own_[i] = static_cast<float>(i + rank);
    const int64_t ranks = int64_t{world} * (world - 1) / 2;  // sum of all ranks
    sum_[i] = static_cast<float>(world * i + ranks);
  }
}

void TestSums::Fill(std::span<float> array) const {
  for (size_t start = 0; start < array.size(); start += kPeriod) {
    const size_t count = std::min<size_t>(kPeriod, array.size() - start);
    std::memcpy(array.data() + start, own_.data(), count * sizeof(float));
  }
}

Status TestSums::Check(std::span<const float> array) const {
  for (size_t start = 0; start < array.size(); start += kPeriod) {
    const size_t count = std::min<size_t>(kPeriod, array.size() - start);
    if (std::memcmp(array.data() + start, sum_.data(), count * sizeof(float)) == 0) continue;
    const auto wrong = std::mismatch(sum_.begin(), sum_.begin() + static_cast<int64_t>(count),
                                     array.begin() + static_cast<int64_t>(start));
    const int64_t i = wrong.second - array.begin();
    return DataLoss(fmt::format("the sum is wrong: element {} of {} is {} instead of {}", i,
                                array.size(), array[i], *wrong.first));
  }
  return OkStatus();
}

Status TestSums::CheckGathered(std::span<const float> array) const {
  for (int owner = 0; owner < world_; ++owner) {
    const ElementRange part = EvenPart(std::ssize(array), world_, owner);
    for (int64_t i = part.offset; i < part.end(); ++i) {
      const float right = own_[i % kPeriod] + static_cast<float>(owner - rank_);
      if (array[i] == right) continue;
      return DataLoss(
          fmt::format("what was gathered is wrong: element {} of {} is {} instead of {}", i,
                      array.size(), array[i], right));
    }
  }
  return OkStatus();
}

}  // namespace ringtail
