// GroupSum: the pushes that make one update, added up.
//
//   n = 2       A: sum = a G_a     B: sum += b G_b     full           a, b: their weights
//   all of 3    C: kept            A: kept             B: full, sum = G_a + G_b + G_c
//
// Where all workers are waited for, gradients are kept and added in the order of the workers,
// whatever the order in which they arrive: the bits of a single reducer
// (collectives/algorithms/single_reducer.h). Otherwise they are added as they arrive. A push that
// was refused since it is not finite fills its place and adds nothing; what a worker has added
// stays if it dies, but its place is open again.
// Thread-safety: none. Memory: none of its own, but a gradient for each worker where all are waited
// for.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_GROUP_SUM_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_GROUP_SUM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "dist/parameter_server/asynchronous_rule.h"

namespace ringtail {

class GroupSum {
 public:
  // `sum` must outlive it; it is what an update reads.
  GroupSum(const Grouping& grouping, std::span<float> sum);

  void Add(int worker, std::span<const float> gradient, double weight, int64_t images);
  void AddNothing(int worker) { places_.push_back(worker); }
  void Remove(int worker);

  bool takes_any() const { return grouping_.by != Grouping::By::kAllWorkers; }
  // With so many workers there.
  bool Full(size_t workers) const;
  int pushes() const { return pushes_; }      // added
  int64_t images() const { return images_; }  // of these
  // Everything added is in `sum`; the next group begins.
  void Close();

 private:
  struct Kept {
    int worker = 0;
    double weight = 1;
    std::vector<float> gradient;
  };
  void AddToSum(std::span<const float> gradient, double weight);

  const Grouping grouping_;
  const std::span<float> sum_;
  std::vector<int> places_;  // who filled them
  std::vector<Kept> kept_;
  int pushes_ = 0;
  int64_t images_ = 0;
  bool empty_ = true;  // sum_ has nothing of this group
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_GROUP_SUM_H_
