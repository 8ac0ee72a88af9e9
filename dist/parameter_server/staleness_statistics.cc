#include "dist/parameter_server/staleness_statistics.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

void StalenessStatistics::Add(int64_t staleness) {
  RT_CHECK(staleness >= 0, "a gradient is not older than its weights");
  const auto place = static_cast<size_t>(std::min(staleness, kMostCounted));
  if (histogram_.size() <= place) histogram_.resize(place + 1);
  ++histogram_[place];
  ++count_;
  sum_ += static_cast<double>(staleness);
  max_ = std::max(max_, staleness);
}

double StalenessStatistics::Mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

int64_t StalenessStatistics::Quantile(double fraction) const {
  const double wanted = fraction * static_cast<double>(count_);
  int64_t seen = 0;
  for (size_t tau = 0; tau < histogram_.size(); ++tau) {
    seen += histogram_[tau];
    if (static_cast<double>(seen) >= wanted) return static_cast<int64_t>(tau);
  }
  return 0;
}

}  // namespace ringtail
