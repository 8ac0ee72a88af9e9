#include "apps/trainer/asynchronous/worker_division.h"

#include <utility>

#include "dist/parameter_server/rule_choice.h"

namespace ringtail {

StatusOr<WorkerDivision> DivideAmongWorkers(const BatchRequest& request, const RunConfig& config,
                                            const SavedBatches& saved, const MeasureSpeed& measure,
                                            TrainingWorld* world) {
  const Grouping grouping = RuleOf(config.dist().asynchronous()).grouping;
  const bool of_all = grouping.by == Grouping::By::kAllWorkers && grouping.backups == 0;
  const int64_t sums = grouping.gradients_per_push;
  SavedBatches divided{.source_rank = saved.source_rank};
  if (of_all) {
    divided.batches = saved.batches;
    divided.batches.global_batch /= sums;
  }
  RT_ASSIGN_OR_RETURN(const RankBatches before,
                      ShareBatches(saved.batches, saved.source_rank, world));
  WorkerDivision division;
  RT_ASSIGN_OR_RETURN(division.batches,
                      DivideBatch(request, config.train(), divided, measure, world));
  const int64_t all = division.batches.own.global_batch;
  division.images_per_step = before.global_batch;
  if (of_all || before.global_batch == 0) {
    division.images_per_step = all * sums * grouping.PushesPerUpdate(world->size()) / world->size();
  }
  return division;
}

RankBatches CheckpointDivision(const RankBatches& batches, int64_t images_per_step) {
  RankBatches kept = batches;
  kept.global_batch = images_per_step;
  if (batches.global_batch != images_per_step) kept.batches.clear();
  return kept;
}

}  // namespace ringtail
