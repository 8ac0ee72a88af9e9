#include "layers/net/stage_memory.h"

#include <vector>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr int kImages = -1;  // as an input

// The blob of the node before the stage: nothing computes it.
NodeNeeds Received(const NodeNeeds& producer) {
  NodeNeeds node{.inputs = {kImages}, .learns = producer.learns};
  node.plan.dst = producer.plan.dst;
  return node;
}

// Reads the blob of the last node, and has no blob of its own.
NodeNeeds Sent(int input, bool learns) { return {.inputs = {input}, .learns = learns}; }

}  // namespace

StageMemory PlanStageMemory(std::span<const NodeNeeds> nodes, int first, int last,
                            const NetMemoryOptions& options) {
  RT_CHECK(first >= 0 && first <= last && last < static_cast<int>(nodes.size()),
           "a stage is a run of nodes");
  std::vector<NodeNeeds> stage;
  const int shift = first == 0 ? 0 : first - 1;  // the node before the first one is node 0
  if (first > 0) stage.push_back(Received(nodes[first - 1]));
  for (int i = first; i <= last; ++i) {
    stage.push_back(nodes[i]);
    for (int& input : stage.back().inputs) {
      RT_CHECK(input >= shift || (input == kImages && first == 0),
               "one blob crosses a cut, that of the node before it");
      if (input != kImages) input -= shift;
    }
  }
  if (last + 1 < static_cast<int>(nodes.size())) {
    stage.push_back(Sent(last - shift, nodes[last].learns));
  }
  const NetMemory memory = PlanNetMemory(stage, options);
  NetMemoryOptions apart = options;
  apart.apart = true;
  return {.step_bytes = memory.total_bytes,
          .kept_bytes = memory.kept_bytes,
          .work_bytes = PlanNetMemory(stage, apart).work_bytes()};
}

}  // namespace ringtail
