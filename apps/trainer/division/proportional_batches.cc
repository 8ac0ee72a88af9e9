#include "apps/trainer/division/proportional_batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace ringtail {
namespace {

// Ranks ordered by descending value; ranks with the same value keep their order.
std::vector<size_t> MostFirst(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return values[a] > values[b]; });
  return order;
}

// Largest remainders, for ranks whose shares are all at least one, the fastest first.
void Divide(std::span<const size_t> ranks, std::span<const double> speeds, int64_t units,
            std::vector<int64_t>* parts) {
  double all = 0;
  for (const size_t rank : ranks) all += speeds[rank];
  std::vector<double> lost;
  int64_t left = units;
  for (const size_t rank : ranks) {
    const double share = static_cast<double>(units) * speeds[rank] / all;
    (*parts)[rank] = static_cast<int64_t>(std::floor(share));
    lost.push_back(share - std::floor(share));
    left -= (*parts)[rank];
  }
  // Fewer units remain than there are ranks.
  const std::vector<size_t> order = MostFirst(lost);
  for (int64_t i = 0; i < left; ++i) ++(*parts)[ranks[order[i]]];
}

}  // namespace

std::vector<double> EvenedSpeeds(std::span<const double> speeds) {
  const std::vector<size_t> order = MostFirst(speeds);
  std::vector<double> evened(speeds.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const double least = speeds[order[begin]] * (1 - kSameSpeed);
    double sum = 0;
    for (; end < order.size() && speeds[order[end]] >= least; ++end) sum += speeds[order[end]];
    for (size_t i = begin; i < end; ++i) {
      evened[order[i]] = sum / static_cast<double>(end - begin);
    }
  }
  return evened;
}

std::vector<int64_t> ProportionalBatches(std::span<const double> speeds, int64_t total,
                                         int64_t unit) {
  const auto ranks = static_cast<int64_t>(speeds.size());
  RT_CHECK(unit >= 1 && total % unit == 0 && total / unit >= ranks,
           "total must be a multiple of unit, with a unit for each rank");
  for (const double speed : speeds) {
    RT_CHECK(std::isfinite(speed) && speed > 0, "speeds must be finite and positive");
  }
  const std::vector<double> evened = EvenedSpeeds(speeds);
  // A share below one is raised to one, which may reduce the share of other ranks below one.
  std::vector<int64_t> parts(speeds.size(), 1);
  std::vector<size_t> rest = MostFirst(evened);
  int64_t units = total / unit;
  while (true) {
    double all = 0;
    for (const size_t rank : rest) all += evened[rank];
    if (static_cast<double>(units) * evened[rest.back()] >= all) break;
    rest.pop_back();  // the slowest
    --units;
  }
  Divide(rest, evened, units, &parts);
  for (int64_t& part : parts) part *= unit;
  return parts;
}

}  // namespace ringtail
