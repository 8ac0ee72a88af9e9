#include "apps/trainer/division/rank_batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/trainer/checkpoint/metadata_text.h"

namespace ringtail {

StatusOr<RankBatches> ShareBatches(const RankBatches& batches, int source_rank,
                                   TrainingWorld* world) {
  RankBatches shared;
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> global,
                      world->ShareNumbers({batches.global_batch}, source_rank));
  shared.global_batch = global.front();
  RT_ASSIGN_OR_RETURN(shared.batches, world->ShareNumbers(batches.batches, source_rank));
  RT_ASSIGN_OR_RETURN(shared.threads, world->ShareNumbers(batches.threads, source_rank));
  RT_ASSIGN_OR_RETURN(
      const std::string machines,
      world->ShareText(fmt::format("{}", fmt::join(batches.machines, "\n")), source_rank));
  shared.machines = SplitText(machines, '\n');
  return shared;
}

}  // namespace ringtail
