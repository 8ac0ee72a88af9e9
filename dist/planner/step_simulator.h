// StepSimulator: predicts a step, or a round of local steps, of a choice, from facts alone.
//
//   every step     data | forward | backward, and what is prepared of the update, beside buckets
//                  (overlap.h) | the gradients' norm | the rest of the update, beside the roll call
//   rounds         H x (data | forward | backward | update), then the roll call, the exchange of
//                  running statistics and differences, and merge; overlapped: beside the next H steps
//
// Of a run that trains images of several sizes: the mean step (image_sizes.h).
// All ranks are as fast as the slowest, whose facts these are; the fastest one counts where images are
// divided by speed (shares_by_speed.h). What is exchanged:
// exchange_jobs.h; what it costs: collective_prices.h. One rank exchanges nothing.
// At least LeastSeconds, and at most what it takes if nothing overlaps
// (tests/dist/planner/planner_facts.h).
// Cost: little if everything of the choice but H and overlap has been asked for before; else that of
// new prices. Memory: some kB per combination of hosts, scheme and buckets.
// Thread-safety: one thread. Errors: InvalidArgument for a choice that the facts do not know.
#ifndef RINGTAIL_DIST_PLANNER_STEP_SIMULATOR_H_
#define RINGTAIL_DIST_PLANNER_STEP_SIMULATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/status.h"
#include "dist/planner/choice.h"
#include "dist/planner/collective_prices.h"
#include "dist/planner/divided_layers.h"
#include "dist/planner/exchange_jobs.h"
#include "dist/planner/image_sizes.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/prediction.h"
#include "dist/planner/shares_by_speed.h"
#include "dist/planner/step_timetable.h"

namespace ringtail {

struct SimulatorOptions {
  bool shares_cores = true;  // false: communication takes no cores, to see what that term is worth
  SharesBySpeed shares;      // of the hosts of a choice by speed
};

class StepSimulator {
 public:
  // `facts`: checked (facts_file.h).
  StepSimulator(const PlannerFacts& facts, const NetworkFacts& network,
                const SimulatorOptions& options = {});

  StatusOr<Prediction> Simulate(const Choice& choice);
  // A lower bound of the seconds of a round, without prices: cheap.
  StatusOr<double> LeastSeconds(const Choice& choice);

  const NetworkFacts& network() const { return network_; }

 private:
  // For what is the same with images of all sizes.
  const StepTimetable& any_size() const { return sizes_.front().timetable; }

  using PriceKey = std::pair<int, std::string>;  // hosts, algorithm
  using JobsKey = std::tuple<int, std::string, std::string, int64_t, int64_t, int64_t>;

  // Seconds of a rank in one step without any other.
  struct OwnStep {
    double before_backward = 0;  // since the step began
    ComputeTimes times;
    double alone = 0;  // of the whole step
  };

  Status Check(const Choice& choice) const;
  // Numbers of parts in which a rank may compute a step (train.accumulation), of which one is fastest.
  std::vector<int64_t> PartsToTry(const Choice& choice) const;
  // Of the rank that takes the longest.
  OwnStep OwnStepOf(const StepTimetable& timetable, const Choice& choice, int64_t parts) const;
  // Of one that takes `factor` times as long as the facts' with `images`.
  static OwnStep OwnStepWith(const StepTimetable& timetable, const Choice& choice, int64_t ranks,
                             int64_t images, int64_t parts, double factor);
  StatusOr<Prediction> SimulateParts(const Choice& choice, int64_t parts);
  StatusOr<Prediction> SimulateSize(const StepTimetable& timetable, const Choice& choice,
                                    int64_t parts);
  // LeastSeconds of these parts, and what of it is sent.
  static double LeastOf(const Choice& choice, const OwnStep& own, double exchange_seconds);
  double LeastExchange(const Choice& choice);
  StatusOr<CollectivePrices*> PricesOf(const Choice& choice);
  StatusOr<const ExchangeJobs*> JobsOf(const Choice& choice);
  // Of the rank with the most, if shares are even.
  int64_t ImagesOf(const Choice& choice) const;
  // Of a choice that is not divided: nothing.
  DividedLayers DividedOf(const Choice& choice, CollectivePrices* prices) const;
  static void AddDivided(const DividedLayers& divided, Prediction* prediction);
  void AddSynchronizedNorms(CollectivePrices* prices, Prediction* prediction) const;
  ExchangeJobs JobsOfKept(const DividedLayers& divided, const Choice& choice,
                          CollectivePrices* prices) const;
  ExchangeWorld WorldOf(const Choice& choice) const;
  CommunicationWork RollCall(const Choice& choice, CollectivePrices* prices) const;
  CommunicationJob Statistics(const Choice& choice, CollectivePrices* prices,
                              double* sent_bytes) const;
  OverlapTimes Beside(double compute, std::vector<CommunicationJob> jobs) const;
  // Seconds until the slowest of all ranks has computed what takes them `compute` on average.
  double WaitingFor(const Prediction& prediction, double compute) const;
  double SimulateStep(const OwnStep& own, ExchangeJobs jobs, CommunicationJob statistics,
                      Prediction* prediction) const;
  void SimulateRound(const OwnStep& own, ExchangeJobs jobs, CommunicationJob statistics,
                     Prediction* prediction) const;

  const NetworkFacts network_;
  const std::vector<TimetableOfSize> sizes_;  // not empty
  const std::vector<Parameter> parameters_;
  const int64_t buffer_elements_;
  const std::vector<int64_t> synchronized_channels_;
  const double busy_delay_;  // of a message, while ranks compute
  const bool shares_cores_;
  const SharesBySpeed shares_;
  std::map<std::string, PlannedScheme, std::less<>> schemes_;
  std::map<PriceKey, CollectivePrices> prices_;
  std::map<JobsKey, ExchangeJobs> jobs_;
  std::map<std::pair<int, std::string>, double> least_;  // seconds, by hosts and scheme
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PLANNER_STEP_SIMULATOR_H_
