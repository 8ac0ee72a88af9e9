#include "dist/pipeline/schedule.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"

namespace ringtail {
namespace {

void CheckShape(const PipelineShape& shape) {
  RT_CHECK(shape.stages >= 1 && shape.micro_batches >= 1,
           "a pipeline has a stage and a micro-batch at least");
}

void CheckStage(int stage, int stages) {
  RT_CHECK(stage >= 0 && stage < stages, "a pipeline has no such stage");
}

}  // namespace

std::string_view PipelineKindName(PipelineKind kind) {
  return kPipelineKindNames[static_cast<int>(kind)];
}

StatusOr<PipelineKind> ParsePipelineKind(std::string_view name) {
  for (const PipelineKind kind : {PipelineKind::kGpipe, PipelineKind::kOneForwardOneBackward}) {
    if (name == PipelineKindName(kind)) return kind;
  }
  return InvalidArgument(fmt::format("'{}' is no schedule of a pipeline; there are {} and {}", name,
                                     kPipelineKindNames[0], kPipelineKindNames[1]));
}

std::vector<StageOperation> StageOperations(const PipelineShape& shape, int stage) {
  CheckShape(shape);
  CheckStage(stage, shape.stages);
  // In GPipe every forward is one of the first.
  const int first_forwards = shape.kind == PipelineKind::kGpipe
                                 ? shape.micro_batches
                                 : std::min(shape.stages - 1 - stage, shape.micro_batches);
  std::vector<StageOperation> operations;
  operations.reserve(2 * static_cast<size_t>(shape.micro_batches));
  for (int m = 0; m < first_forwards; ++m) operations.push_back({PassKind::kForward, m});
  for (int m = 0; m < shape.micro_batches; ++m) {
    const int forward = m + first_forwards;
    if (forward < shape.micro_batches) operations.push_back({PassKind::kForward, forward});
    operations.push_back({PassKind::kBackward, m});
  }
  return operations;
}

std::optional<BoundaryMessage> ReceivedBefore(const StageOperation& operation, int stage,
                                              int stages) {
  CheckStage(stage, stages);
  const int from = operation.pass == PassKind::kForward ? stage - 1 : stage + 1;
  if (from < 0 || from >= stages) return std::nullopt;
  return BoundaryMessage{operation.pass, operation.micro_batch, from, stage};
}

std::optional<BoundaryMessage> SentAfter(const StageOperation& operation, int stage, int stages) {
  CheckStage(stage, stages);
  const int to = operation.pass == PassKind::kForward ? stage + 1 : stage - 1;
  if (to < 0 || to >= stages) return std::nullopt;
  return BoundaryMessage{operation.pass, operation.micro_batch, stage, to};
}

int MostAlive(const PipelineShape& shape, int stage) {
  CheckShape(shape);
  CheckStage(stage, shape.stages);
  if (shape.kind == PipelineKind::kGpipe) return shape.micro_batches;
  return std::min(shape.stages - stage, shape.micro_batches);
}

int CountMostAlive(std::span<const StageOperation> operations) {
  int alive = 0, most = 0;
  for (const StageOperation& operation : operations) {
    alive += operation.pass == PassKind::kForward ? 1 : -1;
    most = std::max(most, alive);
  }
  return most;
}

double IdealBubble(const PipelineShape& shape) {
  CheckShape(shape);
  return static_cast<double>(shape.stages - 1) / (shape.micro_batches + shape.stages - 1);
}

}  // namespace ringtail
