// EmulatedRule: how the gradients of virtual workers become new weights, in virtual time. It is to
// an emulation what UpdatePath (apps/trainer/update/update_path.h) is to a real run, for all workers
// at once.
//
//   Emulation   Begin -> events ... -> finished          the rule schedules events, the queue runs them
//   script      slow (in the job's speed model), OnDeath, OnNotice, OnJoin
//
// Thread-safety: the trainer thread. An error ends the emulation.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_EMULATED_RULE_H_
#define RINGTAIL_APPS_EMULATOR_RULES_EMULATED_RULE_H_

#include <cstdint>

#include "core/status.h"

namespace ringtail {

class EmulatedRule {
 public:
  virtual ~EmulatedRule() = default;
  // Schedules the first events.
  virtual Status Begin() = 0;
  // The worker is dead from now on; no other knows yet.
  virtual Status OnDeath(int worker) = 0;
  // The others know.
  virtual Status OnNotice(int worker) = 0;
  // A new worker has received the state of the others. It takes part from the next time on at which
  // that is possible.
  virtual Status OnJoin(int worker) = 0;
  // Bytes that a new worker must receive.
  virtual int64_t StateBytes() const = 0;
  virtual bool finished() const = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_EMULATED_RULE_H_
