// RoundSum: the sum over workers of what LocalRound::Take offers, as an allreduce makes it.
// Thread-safety: the trainer thread. Cost: one pass over both blocks per worker.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_ROUND_SUM_H_
#define RINGTAIL_APPS_EMULATOR_RULES_ROUND_SUM_H_

#include "apps/trainer/local/local_round.h"
#include "core/aligned_buffer.h"

namespace ringtail {

class RoundSum {
 public:
  void Clear() { differences_added_ = statistics_added_ = false; }
  // The workers in the same order in every run.
  void AddDifferences(LocalRound* taken);
  void AddStatistics(LocalRound* taken);
  // In place of what the worker offered.
  void CopyTo(LocalRound* taken) const;

 private:
  AlignedBuffer differences_, statistics_;
  bool differences_added_ = false, statistics_added_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_ROUND_SUM_H_
