// dist.plan: AUTO: measures, chooses, and says what it chose, before the first step of a run.
//
//   all ranks   a step of theirs, the optimizer, encoding      measure_facts.h
//   when all    the links                                      dist/probe.h
//   had joined
//   rank 0      which hosts, their images, scheme              dist/planner/host_choice.h
//   all ranks   take the fields that rank 0 sets: Planned (dist/dist.proto)
//
// A plan is made once in the life of a run. It is kept in the run's config and its checkpoints, and
// a run that continues follows it.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_PLAN_AUTO_PLAN_H_
#define RINGTAIL_APPS_PLAN_AUTO_PLAN_H_

#include <optional>
#include <string>

#include "apps/config/run_config.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/collectives/rank_group.h"
#include "dist/dist.pb.h"
#include "dist/planner/host_choice.h"

namespace ringtail {

// All ranks; the same on all. The best is that of the whole run, whichever sizes of images it
// trains. Cost: some seconds, of which most is spent in steps of train.batch / train.accumulation
// images of each size, or of a half, a quarter and so on if so many do not fit into the memory of a
// rank. InvalidArgument if hosts have different numbers of ranks.
// `data`: as for MeasureFacts. `equal_shares`: false if ranks are to take images by their speed, so
// that they cannot divide layers among them; else the plan chooses (ShareRule::kFaster).
StatusOr<Planned> MakePlan(const LoadedConfig& loaded, const TrainingData* data, bool equal_shares,
                           TrainingWorld* world);
// All ranks: the plan that `earlier` of rank 0 holds, or its error; else MakePlan's.
StatusOr<Planned> EarlierOrNewPlan(const StatusOr<std::optional<Planned>>& earlier,
                                   const LoadedConfig& loaded, const TrainingData* data,
                                   bool equal_shares, TrainingWorld* world);

// "of 9 hosts: 6 hosts, linear8, every step, 256 images in a step: predicted 5.1 times one host; dense
// on all of them it would be 0.15 times one host"; "4 hosts, dense, every step, images divided by
// speed, 256 images in a step: predicted 3.4 times one host, with even shares 2.9"
std::string InWords(const HostChoice& choice, int hosts);

// `loaded` with the plan itself in dist.planned, and with its settings, unless `loaded` follows the plan
// already: what a user has set since then stays. In a world of another size layers are whole: its ranks
// may have unequal shares.
StatusOr<LoadedConfig> WithPlan(const LoadedConfig& loaded, const Planned& plan, int world_size);

// "of 8 hosts: 6 hosts, ..."; in a world of another size also who trains.
std::string Words(const Planned& plan, int world_size);

// Whether the run follows a plan by which ranks take images by their speed.
bool PlansSharesBySpeed(const DistConfig& config);

// The ranks that train in a world of `world_size`: those of the plan, or all if it was made for a
// world of another size.
RankGroup TrainingRanks(const Planned& plan, int world_size);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_AUTO_PLAN_H_
