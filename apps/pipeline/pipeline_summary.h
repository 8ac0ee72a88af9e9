// What `summary --stages` says of a network that is cut into stages: where, how even, what crosses,
// what each rank holds, how long it waits, and the timetable. Nothing is measured, so the cut is the
// best by floating-point operations, with messages that take no time; of cuts whose steps are within
// kFewerBytesWithin of it, the one with the fewest bytes.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_PIPELINE_PIPELINE_SUMMARY_H_
#define RINGTAIL_APPS_PIPELINE_PIPELINE_SUMMARY_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/pipeline/partition.h"
#include "layers/net/model.h"
#include "layers/net/net.h"
#include "optim/optim.pb.h"

namespace ringtail {

inline constexpr double kFewerBytesWithin = 0.02;

struct StageSummary {
  std::string first_layer, last_layer;  // as `summary` names them
  int64_t parameters = 0;               // elements that train
  double flops = 0;                     // forward and backward of one micro-batch
  double share = 0;                     // of all stages' flops
  double bubble = 0;                    // the fraction of a step that its rank waits
  int alive = 0;                        // micro-batches whose activations it holds at most
  BoundaryCost sends;                   // to the next stage, and back; none after the last one
  // Memory of its rank: weights, gradients and their sum, optimizer state; activations of what is alive and work
  // areas; two slots for each kind of message at this end.
  int64_t weight_bytes = 0, activation_bytes = 0, message_bytes = 0;

  int64_t memory_bytes() const { return weight_bytes + activation_bytes + message_bytes; }
};

struct PipelineSummary {
  PipelineShape shape;
  int64_t micro_batch_images = 0;
  std::vector<StageSummary> stages;
  PipelinePartition partition;
  // Memory of one process, with as many parts per batch and with the batch in one pass (or why there
  // is no such net: a blob would be too large).
  int64_t alone_bytes = 0;
  StatusOr<int64_t> whole_batch_bytes = int64_t{0};

  double LargestShare() const;  // of a stage; 1 / S would be even
};

// `net`: a training net of `model` whose batch is a micro-batch, planned or not. Errors: those of
// PartitionLayers, and of the optimizer.
StatusOr<PipelineSummary> SummarizePipeline(Model* model, const Net& net, const OptimConfig& optim,
                                            const PipelineShape& shape);

std::string PipelineText(const PipelineSummary& summary);
nlohmann::ordered_json PipelineJson(const PipelineSummary& summary);

// How many micro-batches a batch is divided into: `asked`; if that is 0, `accumulation`; and if that
// is 1, the largest divisor of the batch that is at most kMicroBatchesPerStage per stage (a bubble of
// at most a fifth: Huang et al. 2019, section 2.3). InvalidArgument, with the nearest divisors, if
// `asked` does not divide the batch.
inline constexpr int kMicroBatchesPerStage = 4;
StatusOr<int> ChooseMicroBatches(int asked, int64_t batch, int64_t accumulation, int stages);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PIPELINE_PIPELINE_SUMMARY_H_
