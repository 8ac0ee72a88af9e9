// TestSums: arrays whose sum over all ranks is known without communication, so that every run of a
// benchmark can be checked.
//
// Element i of rank r is b(i) + r, where b has the period 1021: a prime, so that a segment in the
// place of another is detected. Sums are small integers, which float32 represents exactly in any
// order of additions. Thread-safety: none. Cost: Fill and Check are one pass
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
  // OK if `array` is the sum of the arrays of all ranks; else names the first wrong element.
  Status Check(std::span<const float> array) const;
  // OK if the EvenPart of every rank in `array` has that rank's elements.
  Status CheckGathered(std::span<const float> array) const;

 private:
  int rank_, world_;
  std::vector<float> own_, sum_;  // one period each
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_TEST_SUMS_H_
