// TicketGradients: the gradients of a ticket's images (dist/parameter_server/tickets.h), batch by
// batch.
//
//   ticket 64..127, batches of 32    rows 64..95 forward, backward | rows 96..127 | sum in the arena
//   next   160..223                  is read meanwhile
//
// A row's crop and place in the order are those that it has in a synchronous run: functions of (seed,
// step, row), where a step is as many images as an update has at the start. So is its dropout, but
// where a batch reaches into the next step: it has the dropout of the step that it begins in.
// Thread-safety: the trainer thread. Memory: a net for each number of rows (a batch; less at the end
// of an epoch, or where rows came back); a block of gradients if a ticket has several batches.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_TICKET_GRADIENTS_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_TICKET_GRADIENTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "apps/trainer/generation.h"
#include "apps/trainer/update/gradient_pass.h"
#include "apps/trainer/update/own_step.h"
#include "apps/trainer/update/step_work.h"
#include "core/aligned_buffer.h"
#include "core/status.h"
#include "data/loader.h"

namespace ringtail {

class TicketGradients {
 public:
  // For the images of `loader`, of which each ticket is asked for. `pass`: of a whole batch.
  TicketGradients(const Generation* generation, std::unique_ptr<GradientPass> pass,
                  std::unique_ptr<DataLoader> loader);

  int64_t image_size() const { return image_size_; }
  // `listener` is told as work continues. Errors: those of the loader; ResourceExhausted if a net for
  // fewer rows does not fit into memory.
  StatusOr<OwnStep> Compute(const StepWork& work, GradientListener* listener);

 private:
  struct Part {  // at most a batch
    int64_t first = 0, rows = 0;
  };
  void Request(const Ticket& ticket);
  StatusOr<GradientPass*> PassOf(int64_t rows);
  StepBatch PlaceOf(const Part& part) const;
  std::vector<Part> PartsOf(const Ticket& ticket) const;
  StatusOr<std::string> WhereNotFinite(const Ticket& ticket);

  const Generation* const generation_;
  const int64_t image_size_, batch_, images_per_step_;
  std::unique_ptr<DataLoader> loader_;
  std::map<int64_t, std::unique_ptr<GradientPass>> passes_;  // by rows
  std::deque<Ticket> requested_;
  AlignedBuffer sum_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_TICKET_GRADIENTS_H_
