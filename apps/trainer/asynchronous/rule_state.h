// RuleState: what the servers' rule has learnt (dist/parameter_server/rule_memory.h), of all of them
// together, and in checkpoints: "servers.mean_squares.<parameter>" or "servers.velocities.<parameter>",
// in the file that rank 0 writes, and scalars among its metadata.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_RULE_STATE_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_RULE_STATE_H_

#include <string>
#include <vector>

#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/training_world.h"
#include "core/parameter.h"
#include "core/status.h"
#include "core/storage/safetensors_writer.h"
#include "dist/parameter_server/rule_memory.h"

namespace ringtail {

struct RuleState {
  std::string name;          // of the block
  std::vector<float> block;  // as the model's values; empty: the rule has none
  RuleScalars scalars;
};

// All ranks: what the source rank's `point` has; zeros and defaults where it has nothing.
StatusOr<RuleState> ShareRuleState(TrainingWorld* world, const ResumePoint& point,
                                   const AsynchronousRule& rule, const ParameterArena& model);

// Views of `state`.
std::vector<TensorView> RuleTensors(const RuleState& state, const ParameterArena& model);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_RULE_STATE_H_
