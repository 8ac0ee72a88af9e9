#include "dist/parameter_server/wire/worker_statistics.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

void WorkerStatistics::Put(int worker, std::span<const float> statistics) {
  RT_CHECK(statistics.size() == mean_.size(), "statistics of the whole model");
  sent_[worker].assign(statistics.begin(), statistics.end());
  const double weight = 1.0 / static_cast<double>(sent_.size());
  std::ranges::fill(mean_, 0.0F);
  for (const auto& [from, own] : sent_) {
    for (size_t i = 0; i < own.size(); ++i) mean_[i] += static_cast<float>(weight * own[i]);
  }
}

}  // namespace ringtail
