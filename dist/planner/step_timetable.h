// StepTimetable: when a rank computes what in a step, for any batch and number of cores.
//
//   forward |                backward                 |
//           |....ready[0]..ready[1]......ready[last]..|      a parameter's gradient is finished
//
// Measured for some batches; between two of them everything is linear in the batch, beyond the
// largest the step has several parts (accumulation), of which the last one's gradients travel. Below
// the smallest the line of the first two continues, but never below proportionality (a small batch is
// no more efficient than a large one) nor above the smallest one's time. Times are divided by the
// ratio of cores: compute that does not scale with cores makes a prediction for more cores too low.
// Thread-safety: const.
#ifndef RINGTAIL_DIST_PLANNER_STEP_TIMETABLE_H_
#define RINGTAIL_DIST_PLANNER_STEP_TIMETABLE_H_

#include <vector>

#include "core/parameter.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

// Batch norm's statistics are those of a part, and of fewer images too uncertain (Wu & He 2018, "Group
// Normalization": 16 lose little).
inline constexpr int64_t kFewestForStatistics = 16;

// Seconds of one step of a rank.
struct ComputeTimes {
  double forward = 0;            // of all parts
  double earlier_backward = 0;   // of all parts but the last
  double backward = 0;           // of the last part
  std::vector<double> ready;     // since the last part's backward began, for each parameter
  double update = 0;             // the norm of gradients, the optimizer, averaged weights
  double norm = 0, average = 0;  // of that
  // For each parameter, what of the optimizer needs nothing but its summed gradient; empty: nothing.
  // By so much `preparing` all of it makes the update longer.
  std::vector<double> prepare;
  double preparing = 0;
};

class StepTimetable {
 public:
  // Of checked facts (facts_file.h), for a rank that computes with `cores`.
  StepTimetable(const PlannerFacts& facts, double cores);

  // In how many equal parts a rank may compute `batch` images, ascending: at least so many that each is
  // no larger than what was measured, and no more than have as many images as the smallest that was
  // measured, with batch norm at least 16. Of facts with whole_steps: the fewest.
  std::vector<int64_t> EqualParts(int64_t batch) const;
  // With which of them it computes fastest. What fits into the caches decides.
  int64_t PartsOf(int64_t batch) const;
  // `batch` > 0: images of a rank in a step, in `parts`. Loading their successors on the same
  // cores makes everything longer by the same factor; how many of them it decodes depends on the
  // number of `ranks` that the images are dealt to, and on whether each has a shard of its own.
  ComputeTimes TimesAt(int64_t batch, int64_t ranks, int64_t parts) const;
  ComputeTimes TimesAt(int64_t batch, int64_t ranks) const {
    return TimesAt(batch, ranks, PartsOf(batch));
  }
  double merge() const { return merge_; }
  double data_wait() const { return data_wait_; }
  double deviation() const { return deviation_; }  // of a step, as a share of it

 private:
  struct Measured {
    double batch = 0;
    ComputeTimes times;
  };
  std::vector<Measured> measured_;  // by ascending batch
  ComputeTimes OfParts(double batch, int64_t parts) const;

  ComputeTimes update_;    // what belongs to the update
  double accumulate_ = 0;  // of one more part
  double merge_ = 0, data_wait_ = 0, deviation_ = 0;
  double load_ = 0, decode_ = 0;  // of an image
  double epochs_ = 1, cached_share_ = 0;
  int64_t shards_ = 1;          // of the images
  int64_t fewest_in_part_ = 1;  // images
  bool whole_ = false;
};

// Of a rank that takes `factor` times as long.
ComputeTimes Scaled(ComputeTimes times, double factor);

// The parameters of the facts, laid out as in an arena (core/parameter.h), which has no memory.
std::vector<Parameter> ParametersOf(const PlannerFacts& facts);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_STEP_TIMETABLE_H_
