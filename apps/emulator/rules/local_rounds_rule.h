// LocalRoundsRule: workers take steps of their own, and exchange what these have changed at the ends
// of rounds (dist.local). The mathematics and the ends of rounds are those of real ranks
// (apps/trainer/local/); what dist.local.period_rule: AUTO measures are virtual times.
//
//   blocking     worker 0  |s|s|s|s|Take ......... Merge|s|s|s|s|Take
//                worker 1  |s |s |s |s |Take ..... Merge|s |s |s |s |Take
//
//   overlapped   worker 0  |s|s|s|s|Take|s|s|s|s|...Merge, Take|s|s|s|s|
//                worker 1  |s |s |s |s |Take|s |s |s |s |Merge, Take|
//                wire                 [  round 0  ]          [  round 1  ]
//                common weights       w0                     w1             averaged and evaluated
//
// Step s of a worker takes its rows of global batch s, so that all workers together see what a
// synchronous run sees. A worker's difference counts by the images of its round. With one member
// and plain averaging nothing is touched, and nothing is a round old: the bits are those of a run
// alone, until another needs the sum to begin with the next round.
// The average of weights over time (optim.ema_decay) follows the common weights that the workers have
// when a round ends, once per step of it.
//
//   round q        members and rows are fixed when the sum of round q - 1 (overlapped: q - 2) is known
//   a death        before Take: the others wait until they notice it, then begin the exchange again
//                  without it. After Take: its change counts, and it is missing from the next round.
//   a new worker   begins with the first round that is fixed after its arrival, with the common
//                  weights and an empty optimizer state, when the round before it (overlapped: two
//                  before) ends. If all that have begun are dead by then, the run ends in an error
//
// Thread-safety: the trainer thread. Memory per worker: VirtualWorker, LocalRound.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_LOCAL_ROUNDS_RULE_H_
#define RINGTAIL_APPS_EMULATOR_RULES_LOCAL_ROUNDS_RULE_H_

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "apps/emulator/clock/round_items.h"
#include "apps/emulator/clock/virtual_exchange.h"
#include "apps/emulator/emulated_job.h"
#include "apps/emulator/rules/emulated_rule.h"
#include "apps/emulator/rules/round_sum.h"
#include "apps/emulator/rules/virtual_worker.h"
#include "apps/emulator/rules/worker_compression.h"
#include "apps/trainer/local/local_period.h"
#include "apps/trainer/local/local_round.h"
#include "apps/trainer/local/mean_cosine.h"

namespace ringtail {

class LocalRoundsRule : public EmulatedRule {
 public:
  // Where it begins, with what the job's state holds.
  struct Start {
    int64_t step = 0;
    std::vector<int> workers;
    std::vector<int> joining;  // have the state, and wait for a round to begin with
  };
  static StatusOr<std::unique_ptr<EmulatedRule>> Create(EmulatedJob* job, const Start& start);

  Status Begin() override;
  Status OnDeath(int worker) override;
  Status OnNotice(int worker) override;
  Status OnJoin(int worker) override;
  int64_t StateBytes() const override;
  bool finished() const override { return finished_; }

 private:
  static constexpr int64_t kNone = -1;
  // A worker that takes part.
  struct Seat {
    std::unique_ptr<VirtualWorker> worker;
    std::unique_ptr<LocalRound> local;
    int64_t step = 0;     // steps done
    int64_t round = 0;    // that it works on
    double images = 0;    // of this round so far
    double expected = 0;  // the same, if all workers had equal shares and all images could be read
    bool waits = false;   // at a boundary
    int64_t begin_ns = 0, idle_since_ns = 0;
    int64_t taken = kNone, arrived = kNone, merged = kNone;  // last rounds
  };
  struct Round {
    std::vector<int> members;          // whose changes are added up
    std::map<int, ElementRange> rows;  // by which images stay divided, also if members are lost
    std::vector<int> newcomers;        // begin when the round delay_ + 1 before has ended
    std::vector<int> listeners;        // take the result without a change of their own
    std::unique_ptr<VirtualExchange> exchange;
    size_t taken = 0, arrived = 0;  // members
    bool alone = false;             // one member, no listener, plain averaging: nothing is touched
    double images = 0, weights = 0, squares = 0, change_squares = 0;
    DifferenceNorms norms;
    int64_t last_taken_ns = 0, last_arrived_ns = 0;
    int64_t longest_step_ns = 0;
    bool summed = false;
  };

  LocalRoundsRule(EmulatedJob* job, const Start& start);
  StatusOr<Seat> NewSeat();

  int64_t FirstStep(int64_t round) const { return begins_[static_cast<size_t>(round)]; }
  int64_t EndStep(int64_t round) const { return FirstStep(round + 1); }
  Status FixRound(int64_t round, std::vector<int> newcomers);
  Status BeginExchange(int64_t round);
  StatusOr<std::vector<ExchangeItem>> ItemsOf(int64_t round) const;
  ExchangeTime TimeOf(int64_t round) const;

  Status BeginStep(int worker);
  Status FinishStep(int worker, const LossResult& loss);
  Status Advance(int worker);
  Status BeginRound(int worker);
  Status Take(int worker);
  Status Sum(int64_t round);
  Status AddUp(int64_t round);
  Status OnArrived(int64_t round, int worker);
  // Whether `worker` has merged `round`; if its sum is there, it does so now.
  StatusOr<bool> HasMerged(int worker, int64_t round);
  Status EndRoundIfMerged(int64_t round);
  Status EndRound(int64_t round);
  std::optional<double> CosineOf(const Round& round) const;
  Status SeatNewcomers(int64_t round, int source);
  void KeepCommon(int source);
  Status Judge(int64_t round);
  bool Counts(int worker) const { return seats_.contains(worker) && !job_->is_dead(worker); }

  EmulatedJob* const job_;
  const OuterRule outer_;
  const int64_t delay_;  // rounds between a boundary and the merge of its sum
  LocalPeriod period_;
  std::unique_ptr<WorkerCompression> compression_;  // null: none
  std::vector<int64_t> begins_;  // first steps of the rounds that are fixed, and the next
  RoundSum sum_;
  std::map<int, Seat> seats_;
  std::map<int64_t, Round> rounds_;  // that have not ended
  std::vector<int> present_;         // workers of the rounds to come
  std::vector<int> joining_;
  bool finished_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_LOCAL_ROUNDS_RULE_H_
