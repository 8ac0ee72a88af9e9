// A pipeline in the answer of `plan`: layers on different ranks, one after the other, with the whole
// batch in as many micro-batches as keep the bubble at a fifth (Huang et al. 2019, section 2.3).
//
//   facts: seconds of a micro-batch --by FLOPs--> layers -> PartitionLayers -> step, waiting, cut
//
// An estimate: how a micro-batch's time divides among layers is taken from their floating-point
// operations; a run measures it (apps/trainer/pipeline/stage_cut.h). All ranks are one pipeline.
// Thread-safety: functions without state. Cost: that of the partition, milliseconds.
#ifndef RINGTAIL_APPS_PLAN_PIPELINE_PLAN_H_
#define RINGTAIL_APPS_PLAN_PIPELINE_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "core/status.h"
#include "dist/pipeline/schedule.h"
#include "dist/planner/network_facts.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

struct PipelinePlan {
  PipelineShape shape;
  int64_t micro_batch = 0;       // images
  double step_s = 0, waits = 0;  // of a step, with the update; fraction that ranks wait
  double images_per_s = 0;
  int64_t sent_bytes = 0;              // in a step, over the busiest boundary, both ways
  std::vector<std::string> cut_after;  // for dist.model_parallel.pipeline
  std::vector<std::string> settings;   // that make the config's run one, as for --set
};

// For steps of `batch` images of all ranks: the mean one of all sizes of images, the cut that of the size
// with the most steps. None if there is one rank, if the net has fewer places to cut than that takes, if
// micro-batches are too small for it (one image and one pixel for batch norm), or if the facts are of
// another network than the config.
StatusOr<std::optional<PipelinePlan>> PlanPipeline(const LoadedConfig& loaded,
                                                   const PlannerFacts& facts,
                                                   const NetworkFacts& network, int64_t batch);

// One line: the pipeline beside the best way to train whole networks, and whether it pays.
std::string DescribePipeline(const PipelinePlan& plan, double best_images_per_s);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_PIPELINE_PLAN_H_
