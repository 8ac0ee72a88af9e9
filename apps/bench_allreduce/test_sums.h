// TestSums: arrays whose sum over all ranks is known without communication, so that every run of
// a benchmark can be checked, too.
//
// Element i of rank r is b(i) + r, and b repeats after 1021 elements: a prime, so that a segment
// which ends up in another's place does not look right. Sums are small whole numbers, which float32
// holds exactly in any order of additions. Thread-safety: none. Cost: Fill and Check are one pass
// over the array.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_TEST_SUMS_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_TEST_SUMS_H_

#include <span>
#include <vector>

#include "core/status.h"

namespace ringtail {

class TestSums {
 public:
  TestSums(int rank, int world);

  void Fill(std::span<float> array) const;
  // OK if `array` is the sum of what all ranks have filled in; else the first wrong element.
  Status Check(std::span<const float> array) const;
  // OK if every rank's EvenPart of `array` is what that rank has filled in there.
  Status CheckGathered(std::span<const float> array) const;

 private:
  int rank_, world_;
  std::vector<float> own_, sum_;  // one period each
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_TEST_SUMS_H_
