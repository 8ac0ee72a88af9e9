// StepWork: what this rank computes next.
//
//   planned    its rows of the batches of the plan's next step       most runs
//   ticket     rows that a server has given to this rank alone       dist.asynchronous
//   nothing    all ranks are to meet
//
// Thread-safety: a value.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_STEP_WORK_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_STEP_WORK_H_

#include <optional>

#include "dist/parameter_server/tickets.h"

namespace ringtail {

struct StepWork {
  enum class Kind { kPlanned, kTicket, kNothing };
  Kind kind = Kind::kPlanned;
  Ticket ticket;
  std::optional<Ticket> next;    // the one after it, if it is known, so that images are read ahead
  int64_t statistics_steps = 1;  // planned: batch norm takes the batch in for so many (StepContext)
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_STEP_WORK_H_
