// StateSnapshot: the state of a run as its servers send it to worker 0, which puts it together.
//
//   kState of shard s   weights | optimizer blocks, one after the other | average | the rule's block
//                       | its scalars                                                 its layout
//   of the first        ... | running statistics | their average
//
// A block of the optimizer that the run's does not have (or the other way round: a server may keep no
// momentum, server_optimizer.h) is left out. One of the run's that servers do not have is forgotten
// when they start: it would be that of another world size, some day. Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_STATE_SNAPSHOT_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_STATE_SNAPSHOT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "apps/trainer/asynchronous/rule_state.h"
#include "apps/trainer/asynchronous/shard_placement.h"
#include "apps/trainer/checkpoint/training_state.h"
#include "optim/optimizer.h"

namespace ringtail {

// The size of what a shard sends; `blocks`: of its optimizer; `rule`: has a block, or none.
size_t SnapshotBytes(const PlacedShard& shard, bool first, size_t blocks,
                     const TrainingState& state, const RuleState& rule);

// `sent` has that size. Puts the rule's block into `rule`; its scalars, of this shard, are the result.
RuleScalars PutSnapshot(const PlacedShard& shard, bool first,
                        const std::vector<std::string>& blocks, std::span<const float> sent,
                        TrainingState* state, RuleState* rule);

// Zeroes the blocks of the run's optimizer that a server does not have.
void ForgetOtherBlocks(const std::vector<Optimizer::StateBlock>& served, Optimizer* run);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_STATE_SNAPSHOT_H_
