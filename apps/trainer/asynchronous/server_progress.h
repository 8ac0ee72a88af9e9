// ServerProgress: how far the servers of a run have come, at a synchronized point; a part of every
// checkpoint of an asynchronous run.
//
//   "1200 38400 40960 0 32 4096 8"     version 1200, 38,400 images applied; rows before 40,960 were
//                                      handed out, but not used are 0..31 and 4096..4103
//
// and what their rule has learnt (RuleScalars): "1200 0.5 0.01 0.0003", with all bits.
//
// Thread-safety: a value. Errors: DataLoss if a text is none.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_PROGRESS_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_PROGRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/trainer/training_plan.h"
#include "core/status.h"
#include "dist/parameter_server/rule_memory.h"
#include "dist/parameter_server/tickets.h"

namespace ringtail {

struct ServerProgress {
  int64_t version = 0, images = 0;
  int64_t next = 0;            // rows before it were handed out
  std::vector<Ticket> unused;  // of these
  bool empty() const { return next == 0; }
  // Rows whose gradients were judged. `images` are fewer where the first server has thrown some away
  // that others have taken.
  int64_t rows_used() const;
};

// Where the round that begins at step `begin` ends: the next step after which something is due, or
// which begins with another image size. Not before `handed_out`, the first step none of whose rows
// was handed out: a round that was stopped before its end may have left some to be used again.
int64_t NextRoundEnd(const TrainingPlan& plan, int64_t begin, int64_t handed_out);

std::vector<int64_t> NumbersOf(const ServerProgress& progress);
StatusOr<ServerProgress> ServerProgressOf(const std::vector<int64_t>& numbers);

std::string ServerProgressText(const ServerProgress& progress);
StatusOr<ServerProgress> ParseServerProgress(const std::string& text);

std::string RuleScalarsText(const RuleScalars& scalars);
StatusOr<RuleScalars> ParseRuleScalars(const std::string& text);  // "": of older checkpoints

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_PROGRESS_H_
