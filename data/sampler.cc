#include "data/sampler.h"

#include <numeric>
#include <utility>

#include "core/random.h"

namespace ringtail {

std::vector<int64_t> EpochPermutation(uint64_t seed, int64_t epoch, int64_t n) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  Rng rng(RngKey(seed).With(kShuffleStream).With(static_cast<uint64_t>(epoch)));
  for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[rng.Below(i + 1)]);
  return order;
}

}  // namespace ringtail
