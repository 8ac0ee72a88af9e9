// StalenessStatistics: how late gradients were.
//
//   tau      0  1  2  3  4             4 workers of equal speed, every push an update:
//   pushes   1  1  1  9  0             mean 2.5, p95 3, max 3 (the first pushes are less late)
//
// Thread-safety: none. Memory: 8 bytes for each tau up to the largest seen, at most kMostCounted;
// older ones are counted together, as that old, while mean and max are those of all.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_STALENESS_STATISTICS_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_STALENESS_STATISTICS_H_

#include <cstdint>
#include <vector>

namespace ringtail {

class StalenessStatistics {
 public:
  static constexpr int64_t kMostCounted = 4096;

  void Add(int64_t staleness);  // >= 0

  int64_t count() const { return count_; }
  double Mean() const;                      // 0 if there is none
  int64_t Quantile(double fraction) const;  // the smallest tau that this fraction does not exceed
  int64_t max() const { return max_; }
  const std::vector<int64_t>& histogram() const { return histogram_; }  // pushes by tau

 private:
  std::vector<int64_t> histogram_;
  int64_t count_ = 0, max_ = 0;
  double sum_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_STALENESS_STATISTICS_H_
