// Partition: where to cut a network's layers into the stages of a pipeline, so that a step is over
// as early as possible and every stage fits into memory.
//
//   layers   a   b   c   d   e   f          a stage is a run of layers; a cut lies only where one
//              |       |   |   |            blob crosses (layers/net/cut_points.h)
//   stages   [ a   b   c ] [ d ] [ e  f ]
//
// How it is found:
//   1. Layers that may not be parted become one unit.
//   2. Dynamic programming over prefix sums: for each stage and first unit, the least that the
//      slowest of the stages from there on can take, computing and with its messages, and the least
//      memory of the largest. The best of it is the first candidate.
//   3. Branch and bound: cuts are set from the first on. What is set, and the tables for the rest,
//      bound the step from below; a branch that cannot beat the best candidate is left:
//          step >= (forward + backward of the stages before s, and messages to them and back)
//                  + M (forward + backward of stage s)
//          step >= M times what one port of a stage sends or receives
//      What remains is priced as the schedule runs it (schedule_cost.h). So the answer is the best of
//      all cuts, which need not be the best balanced.
//   4. Of the cuts whose steps are as short (or longer by at most `fewer_bytes_within`), the one
//      with the fewest bytes between stages; of these the fastest, then the one with the latest cuts.
//
// Memory of a stage: weights, gradients and optimizer state of its layers, what they keep for
// backward of each micro-batch that is alive (MostAlive: stages near the images hold more in 1F1B),
// and the slots of its messages.
// Thread-safety: a pure function. Cost: O(S n^2) for n units, and one pricing per candidate: of the
// shipped networks milliseconds. Each of the two searches ends after about half a second, and says so
// (is_proven): 66 equal layers in 16 stages, which very many cuts divide equally well.
// Sources: Harlap et al. 2018, "PipeDream", section 3.2 (dynamic programming over stage times);
// Huang et al. 2019, "GPipe", section 2.2.
#ifndef RINGTAIL_DIST_PIPELINE_PARTITION_H_
#define RINGTAIL_DIST_PIPELINE_PARTITION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/collectives/link_model.h"
#include "dist/pipeline/schedule_cost.h"

namespace ringtail {

// Times and kept bytes of one micro-batch.
struct PipelineLayer {
  std::string name;
  double forward_s = 0, backward_s = 0;
  int64_t fixed_bytes = 0;     // weights, gradients, optimizer state
  int64_t kept_bytes = 0;      // what forward keeps for backward
  bool may_cut_after = false;  // (after the last layer there is no cut)
  BoundaryCost crossing;       // if it is cut there
};

struct PartitionProblem {
  std::vector<PipelineLayer> layers;  // at least one, times and bytes not negative
  PipelineShape shape;
  LinkModel link;
  int slots = kPipelineSlots;
  int64_t memory_limit_bytes = 0;  // of a stage; 0: none
  double fewer_bytes_within = 0;   // fraction of the best step that fewer bytes may cost
};

struct PipelinePartition {
  std::vector<int> last_layers;       // by stage; the last is the last layer
  std::vector<int64_t> memory_bytes;  // by stage
  PipelineCosts costs;                // by stage and boundary
  ScheduleCost price;
  bool is_proven = true;  // false: the search was ended before it had seen everything

  int FirstLayer(int stage) const { return stage == 0 ? 0 : last_layers[stage - 1] + 1; }
};

// InvalidArgument if shape.stages or micro_batches is below 1, or there are fewer places to cut than
// cuts, with the places. ResourceExhausted if no cut keeps to the memory limit: with the layers that
// are too large alone, or else the least that the largest stage needs.
StatusOr<PipelinePartition> PartitionLayers(const PartitionProblem& problem);

// The partition with these last layers, whether it is good or fits, or not; the network may be cut
// after each, and they end with the last layer.
PipelinePartition PriceOfCuts(const PartitionProblem& problem, std::span<const int> last_layers);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PIPELINE_PARTITION_H_
