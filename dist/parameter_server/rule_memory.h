// RuleMemory: what a rule has learnt of a shard's gradients, as a checkpoint has it: in a form that
// does not depend on who the workers are, so that a run continues with more of them, or fewer.
//
//   rule                  block                                          a worker begins with
//   delay, adaptive       mean squares, the mean over the workers        that mean
//   DANA                  the sum of all velocities                      an equal part of it
//   the others            none
//
// With one worker a run that continues has the bits of one that was never stopped.
// Thread-safety: a value. Cost of Encode and Decode: some dozens of operations.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_RULE_MEMORY_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_RULE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "dist/parameter_server/asynchronous_rule.h"

namespace ringtail {

struct RuleScalars {
  int64_t updates = 0;       // that the running means have seen
  double usual_weight = 1;   // ShardUpdate::usual_weight
  double learning_rate = 0;  // of the last update, by which DANA looks ahead
  double mean_step = 0;      // of gap-aware weights: how far an update moves a weight
  bool operator==(const RuleScalars&) const = default;
};

// "mean_squares", "velocities"; empty: the rule has no block.
std::string RuleBlockName(const AsynchronousRule& rule);

// As they travel with floats: 16 bits in each.
inline constexpr size_t kScalarFloats = 16;
void EncodeScalars(const RuleScalars& scalars, std::span<float> out);
RuleScalars DecodeScalars(std::span<const float> encoded);

// Of several shards: the means.
RuleScalars MeanOf(std::span<const RuleScalars> shards);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_RULE_MEMORY_H_
