#include "apps/trainer/asynchronous/worker_division.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/parallel_for.h"
#include "core/text/counted.h"
#include "dist/collectives/rank_group.h"
#include "dist/parameter_server/rule_choice.h"

namespace ringtail {
namespace {

constexpr int64_t kFailed = -1;

// Of the ranks from `first` on, as a checkpoint of all has them.
RankBatches OfWorkers(RankBatches all, int first, int ranks) {
  const auto strip = [&](auto* of_ranks) {
    if (std::ssize(*of_ranks) == ranks)
      of_ranks->erase(of_ranks->begin(), of_ranks->begin() + first);
  };
  strip(&all.batches);
  strip(&all.machines);
  strip(&all.threads);
  return all;
}

// Among the ranks from `first` on; `saved` is the same on all ranks.
StatusOr<BatchDivision> DivideAmong(int first, const BatchRequest& request, const RunConfig& config,
                                    const RankBatches& saved, const MeasureSpeed& measure,
                                    TrainingWorld* world) {
  std::vector<int> workers(static_cast<size_t>(world->size() - first));
  std::iota(workers.begin(), workers.end(), first);
  RT_ASSIGN_OR_RETURN(const auto group, world->OfGroup(RankGroup(workers), config.dist()));
  StatusOr<BatchDivision> own = BatchDivision{};
  if (group != nullptr) {
    own = DivideBatch(request, config.train(), {.batches = OfWorkers(saved, first, world->size())},
                      measure, group.get());
  }
  const int64_t batch = !own.ok() ? kFailed : group != nullptr ? own->own.batch : 0;
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> batches, world->Gather(batch));
  RT_RETURN_IF_ERROR(Status(own.status()));
  if (std::ranges::find(batches, kFailed) != batches.end()) {
    return InvalidArgument("the workers cannot divide the batch; their logs say why");
  }
  BatchDivision division = *std::move(own);
  division.all.batches = batches;
  division.all.global_batch = std::accumulate(batches.begin(), batches.end(), int64_t{0});
  RT_ASSIGN_OR_RETURN(division.all.threads, world->Gather(int64_t{NumComputeThreads()}));
  division.own.global_batch = division.all.global_batch;
  // (A rank that only serves evaluates with as many.)
  if (group == nullptr) division.own.batch = config.train().batch();
  return division;
}

}  // namespace

int WorkersOf(const RankBatches& batches) {
  return static_cast<int>(
      std::ranges::count_if(batches.batches, [](int64_t batch) { return batch > 0; }));
}

StatusOr<int> DedicatedServers(const AsynchronousConfig& config, int ranks) {
  if (!config.dedicated()) return 0;
  if (config.servers() > 0 && config.servers() < ranks) return config.servers();
  return InvalidArgument(
      fmt::format("dist.asynchronous.dedicated: of {} the first dist.asynchronous.servers only "
                  "serve, and {} is "
                  "not between 1 and {}",
                  Counted(ranks, "rank"), config.servers(), ranks - 1));
}

StatusOr<WorkerDivision> DivideAmongWorkers(const BatchRequest& request, const RunConfig& config,
                                            const SavedBatches& saved, const MeasureSpeed& measure,
                                            TrainingWorld* world) {
  const Grouping grouping = RuleOf(config.dist().asynchronous()).grouping;
  const bool of_all = grouping.by == Grouping::By::kAllWorkers && grouping.backups == 0;
  const int64_t sums = grouping.gradients_per_push;
  RT_ASSIGN_OR_RETURN(const int dedicated,
                      DedicatedServers(config.dist().asynchronous(), world->size()));
  RT_ASSIGN_OR_RETURN(const RankBatches before,
                      ShareBatches(saved.batches, saved.source_rank, world));
  RankBatches divided;
  if (of_all) {
    divided = before;
    divided.global_batch /= sums;
  }
  WorkerDivision division;
  if (dedicated > 0) {
    RT_ASSIGN_OR_RETURN(division.batches,
                        DivideAmong(dedicated, request, config, divided, measure, world));
  } else {
    RT_ASSIGN_OR_RETURN(division.batches,
                        DivideBatch(request, config.train(), {.batches = divided}, measure, world));
  }
  const int64_t all = division.batches.own.global_batch;
  const int workers = WorkersOf(division.batches.all);
  division.images_per_step = before.global_batch;
  if (of_all || before.global_batch == 0) {
    division.images_per_step = all * sums * grouping.PushesPerUpdate(workers) / workers;
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
