// Which layers this rank has, where the ranks are stages of a pipeline (dist.model_parallel.pipeline).
//
//   rank     0        1        2        3        4        5        3 stages, 6 ranks
//   stage    0        1        2        0        1        2
//   replica  0 ----------------------   1 ----------------------   a pipeline with rows of its own
//
// The replicas of a stage add up their gradients, as ranks with whole networks do.
// Thread-safety: functions without state. Errors: those of the model; InvalidArgument, at the field, if
// the ranks are no multiple of the stages, or a layer is named after which the net cannot be cut.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_CHOICE_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_CHOICE_H_

#include <span>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/status.h"
#include "dist/pipeline/schedule.h"
#include "layers/pipeline/stage.h"

namespace ringtail {

struct StageChoice {
  PipelineShape shape;  // without a pipeline one stage
  int stage = 0, replica = 0, replicas = 1;
  StageRequest request;                                // of the model
  std::vector<std::string> first_layers, last_layers;  // by stage

  bool divides() const { return shape.stages > 1; }
  bool is_first() const { return stage == 0; }
  bool is_last() const { return stage + 1 == shape.stages; }
  int RankOf(int other_stage) const { return replica * shape.stages + other_stage; }
  // The ranks with this one's layers, in order of their replicas.
  std::vector<int> Replicas(int of_stage) const;
  // "2 stages, schedule 1f1b, 4 micro-batches: conv1 .. layer2.1 | layer3.0 .. loss"; empty: no pipeline.
  std::string Describe() const;
};

// `cut_after`: the last layer of each stage but the last one; empty: those that the config names, which
// must name some. One rank has all layers.
StatusOr<StageChoice> ChooseStage(const LoadedConfig& loaded,
                                  std::span<const std::string> cut_after, int rank, int ranks);

// S and M of a config.
PipelineShape PipelineShapeOf(const RunConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_CHOICE_H_
