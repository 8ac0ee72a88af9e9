// What a schedule of a pipeline costs, computed from the schedule itself: a clock in place of
// machines.
//
//   stage s      |F m|                                  a stage computes one operation at a time
//                    |== bytes * beta ==|               its port sends one message at a time
//                     `- alpha -.
//   port of s+1                  |== bytes * beta ==|   and another receives one at a time
//   stage s+1                                       |F m|
//
// - An operation begins when its stage has ended the one before, its message has arrived, and there
//   is a free slot for what it will send.
// - A message begins when its operation has ended, both ports are free (first come, first served;
//   a stage talks to both neighbours through the same two ports), and its receiver has a free slot.
//   Stages compute meanwhile.
// - There are `slots` at either end of each boundary and direction: a sender's is free again when
//   its message has left, a receiver's when the operation that reads it has ended.
//
// The critical path is what the step's end waited for, backwards to its beginning: its seconds add
// up to the step. Shortening anything else does not shorten the step.
// Thread-safety: a pure function; every rank computes the same price. Any unit of time will do, in
// place of seconds, if messages take no time.
// Cost: O(S) for each of 4 S M events, some 0.1 ms for 4 stages and 32 micro-batches.
#ifndef RINGTAIL_DIST_PIPELINE_SCHEDULE_COST_H_
#define RINGTAIL_DIST_PIPELINE_SCHEDULE_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dist/collectives/link_model.h"
#include "dist/pipeline/schedule.h"

namespace ringtail {

// Messages for which there is room at either end: one that arrives or leaves, one that is computed.
inline constexpr int kPipelineSlots = 2;

// From its begin to its arrival. A message of no bytes is none and takes no time: a gradient that
// nothing before the boundary learns from.
double SecondsOfMessage(int64_t bytes, const LinkModel& link);

// Of one micro-batch.
struct StageCost {
  double forward_s = 0, backward_s = 0;
  int64_t kept_bytes = 0;  // what forward keeps for backward
};

// Of one micro-batch, from a stage to the next and back.
struct BoundaryCost {
  int64_t activation_bytes = 0, gradient_bytes = 0;
};

struct PipelineCosts {
  std::vector<StageCost> stages;
  std::vector<BoundaryCost> boundaries;  // after each stage but the last
  LinkModel link;                        // of every boundary; nothing is added, so no gamma
  int slots = kPipelineSlots;            // at least 1
};

// What the critical path passes through, in total: a stage that computes, or messages on the way.
struct PathPart {
  bool is_transfer = false;
  PassKind pass = PassKind::kForward;  // of messages: what they carry
  int stage = 0;                       // that computes, or sends
  int forwards = 0, backwards = 0;     // operations; one of both for each message
  double seconds = 0;
};

struct ScheduleCost {
  double step_s = 0;
  std::vector<double> busy_s;                  // by stage: computing
  std::vector<double> bubble;                  // by stage: the fraction of the step it waits
  std::vector<int64_t> peak_activation_bytes;  // by stage: kept_bytes times CountMostAlive
  std::vector<std::vector<double>> start_s;    // by stage: of each operation, in order
  std::vector<PathPart> critical_path;         // longest first

  double MeanBubble() const;  // of the stages: the fraction of all ranks' time that is lost
};

// `costs` must be those of shape.stages.
ScheduleCost CostOfSchedule(const PipelineShape& shape, const PipelineCosts& costs);

// For people: "75.0 % stage 1 (4 forwards, 4 backwards), 25.0 % stage 0 (1 forward, 1 backward)";
// parts that take no time are left out.
std::string DescribeCriticalPath(const ScheduleCost& cost);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PIPELINE_SCHEDULE_COST_H_
