// Schedule of a pipeline: in which order each stage computes forward and backward of its
// micro-batches, as data. A network is cut into S stages, one per rank; a batch is divided into M
// micro-batches, whose gradients add up. Activations travel to the next stage, gradients of them to
// the previous one. A step ends with every stage idle, and then the weights
// change (a flush), so that all micro-batches see the same weights.
//
//   GPipe: all forwards, then all backwards. S = 3, M = 4:
//
//     stage 0   F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
//     stage 1   .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
//     stage 2   .  .  F0 F1 F2 F3 B0 B1 B2 B3
//
//   1F1B: stage s begins with S - 1 - s forwards, then alternates one forward, one backward, and
//   ends with the backwards that are left. The same length, but a stage holds the activations of at
//   most S - s micro-batches instead of M:
//
//     stage 0   F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//     stage 1   .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//     stage 2   .  .  F0 B0 F1 B1 F2 B2 F3 B3
//
// With equal stages both take (M + S - 1) (forward + backward) seconds, of which each stage waits
// for (S - 1) / (M + S - 1).
//
// Backwards come in the order of the forwards, so gradients are summed in the order in which one
// process accumulates them, and have its bits.
// No deadlock if every receive blocks and every direction of every boundary has room for one
// message (tests/dist/pipeline/); 1F1B needs that room, GPipe does not.
// Sources: Huang et al. 2019, "GPipe", section 2.3; Narayanan et al. 2021, "Efficient Large-Scale
// Language Model Training on GPU Clusters Using Megatron-LM", section 2.2 (PipeDream-flush).
// Thread-safety: pure functions; arguments out of range end the process.
#ifndef RINGTAIL_DIST_PIPELINE_SCHEDULE_H_
#define RINGTAIL_DIST_PIPELINE_SCHEDULE_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

enum class PipelineKind { kGpipe, kOneForwardOneBackward };

inline constexpr std::string_view kPipelineKindNames[] = {"gpipe", "1f1b"};
std::string_view PipelineKindName(PipelineKind kind);
// InvalidArgument, with the names, if it is none of them.
StatusOr<PipelineKind> ParsePipelineKind(std::string_view name);

enum class PassKind { kForward, kBackward };

// What a stage computes without a pause: one pass of its layers over one micro-batch.
struct StageOperation {
  PassKind pass = PassKind::kForward;
  int micro_batch = 0;

  bool operator==(const StageOperation&) const = default;
};

// What crosses a boundary between neighbours: after a forward the activation, to the next stage;
// after a backward its gradient, to the previous one.
struct BoundaryMessage {
  PassKind pass = PassKind::kForward;
  int micro_batch = 0;
  int from = 0, to = 0;  // stages

  bool operator==(const BoundaryMessage&) const = default;
};

// What a schedule depends on; stages and micro-batches are counted from 0.
struct PipelineShape {
  PipelineKind kind = PipelineKind::kOneForwardOneBackward;
  int stages = 1;         // S, at least 1
  int micro_batches = 1;  // M, at least 1
};

// Of one stage, in order: 2 M operations.
std::vector<StageOperation> StageOperations(const PipelineShape& shape, int stage);

// What the stage waits for before an operation: none in the first stage's forwards, which read
// images, and in the last one's backwards, which follow its loss.
std::optional<BoundaryMessage> ReceivedBefore(const StageOperation& operation, int stage,
                                              int stages);
// What it sends after it: none after the last stage's forwards and the first one's backwards.
std::optional<BoundaryMessage> SentAfter(const StageOperation& operation, int stage, int stages);

// Of how many micro-batches a stage holds activations at most, from the beginning of the forward to
// the end of the backward: M in GPipe, min(S - s, M) in 1F1B.
int MostAlive(const PipelineShape& shape, int stage);
// The same, counted in a list of operations.
int CountMostAlive(std::span<const StageOperation> operations);

// The fraction of a step that each of S equal stages waits, if messages take no time:
// (S - 1) / (M + S - 1).
double IdealBubble(const PipelineShape& shape);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PIPELINE_SCHEDULE_H_
