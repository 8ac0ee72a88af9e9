// A network as dist/pipeline/partition.h wants it: what lies between two places where it may be cut
// is a layer there, named after its last node. Cuts that would part a batch norm from a neighbour are
// left out, so that stages compute the bits of one process (layers/net/cut_points.h).
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PIPELINE_PIPELINE_PROBLEM_H_
#define RINGTAIL_APPS_PIPELINE_PIPELINE_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "core/status.h"
#include "dist/pipeline/partition.h"
#include "layers/net/model.h"
#include "layers/net/net.h"
#include "optim/optim.pb.h"

namespace ringtail {

// By node of the graph, of one micro-batch: measured seconds, or anything in proportion to them if
// messages take no time.
struct NodeSeconds {
  std::vector<double> forward, backward;
};

// Floating-point operations in place of seconds. Only convolutions and linear layers have any, so
// what else a layer does, and how fast each runs, is not in it.
NodeSeconds FlopsAsSeconds(const Net& net);

struct NetPipeline {
  PartitionProblem problem;     // without link and limit, which are the caller's
  std::vector<int> last_nodes;  // by layer of the problem: its last node

  // By stage: the last node.
  std::vector<int> LastNodes(const PipelinePartition& partition) const;
};

// `net`: a training net of `model` whose batch is a micro-batch, planned or not. `copies`: of the
// weights that train, CountWeightCopies.
NetPipeline MakeNetPipeline(const Model& model, const Net& net, const NodeSeconds& seconds,
                            const PipelineShape& shape, int copies);

// How many floats there are for each weight beside itself and its gradient: the optimizer's state, the
// averaged weights of optim.ema_decay, the sum of gradients where a batch has several parts. Errors:
// those of Optimizer::Create.
StatusOr<int> CountWeightCopies(const OptimConfig& config, int64_t parts);

// What a rank holds for its weights: themselves, gradients, optimizer state, running statistics.
int64_t WeightBytes(int64_t trained_bytes, int64_t fixed_bytes, int copies);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PIPELINE_PIPELINE_PROBLEM_H_
