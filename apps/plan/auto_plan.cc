#include "apps/plan/auto_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "apps/plan/choice_settings.h"
#include "apps/plan/measure_together.h"
#include "apps/plan/run_network.h"
#include "apps/trainer/memory_need.h"
#include "core/config/text_config.h"
#include "core/machine/memory_limit.h"
#include "core/text/counted.h"
#include "dist/planner/image_sizes.h"
#include "dist/planner/shown_choices.h"

namespace ringtail {
namespace {

constexpr int kMeasuredBatches =
    3;  // measured: the largest part of a step, a half and a quarter of it

// Images that every rank has the memory to compute at once: those of the config, or a half of them and
// so on, since many ranks need not be able to hold the batch of all.
StatusOr<int64_t> LargestThatFits(const LoadedConfig& loaded, TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded, /*allocate=*/false));
  const int64_t available = AvailableMemoryBytes() / RanksHere(*world);
  int64_t images = PartBatch(loaded.config);
  for (; images > 1; images /= 2) {
    RT_ASSIGN_OR_RETURN(const TrainingMemory memory,
                        MemoryToTrain(loaded, model.get(), images, /*alive=*/1));
    if (memory.sum() <= available) break;
  }
  RT_ASSIGN_OR_RETURN(const auto all, world->Gather(images));
  return std::ranges::min(all);
}

MeasureFactsOptions WhatToMeasure(const RunConfig& config, const TrainingData* data,
                                  int64_t largest_batch) {
  return {.largest_batch = largest_batch,
          .sizes = SizeSharesOf(config),
          .fractions = kMeasuredBatches,
          .data = data,
          .frozen = config.train().freeze_epochs() == 0,  // what thaws counts
          .schemes = ShownSchemes(TrainedNetOf(config))};
}

// Of the mean step of the run with the largest batch.
double StepSeconds(const PlannerFacts& facts) {
  double seconds = facts.update_s();
  for (const auto& [share, of_size] : SizesOf(facts)) {
    const StepFacts& step = of_size.step(of_size.step_size() - 1);
    seconds += share * (step.forward_s() + step.backward_s());
  }
  return seconds;
}

// The slowest rank of each host; rank 0, whose facts count, is 1.
std::vector<double> SlownessOfHosts(const std::vector<double>& step_seconds,
                                    const Topology& topology) {
  std::vector<double> slowness(topology.hosts());
  for (int rank = 0; rank < topology.world(); ++rank) {
    double& host = slowness[topology.host_of_rank[rank]];
    host = std::max(host, step_seconds[rank]);
  }
  for (double& host : slowness) host /= step_seconds[0];
  return slowness;
}

Planned PlanOf(const HostChoice& choice, const PlannerFacts& facts, const RunConfig& config,
               const TrainingWorld& world) {
  const Topology& topology = world.topology();
  Planned plan;
  plan.set_world(topology.world());
  std::string idle;
  for (int rank = 0; rank < topology.world(); ++rank) {
    if (std::ranges::binary_search(choice.hosts, topology.host_of_rank[rank])) {
      plan.add_rank(rank);
    } else {
      idle += (idle.empty() ? "" : ", ") + world.Describe(rank);
    }
  }
  for (std::string& field : SettingsOf(choice.best, facts, config)) plan.add_set(std::move(field));
  if (choice.best.choice.by_speed) plan.set_by_speed(true);
  std::string why = InWords(choice, topology.hosts());
  if (!idle.empty()) why += fmt::format("; idle, since they would slow it down: {}", idle);
  plan.set_why(why);
  return plan;
}

// What rank 0 has, on all ranks.
StatusOr<Planned> SharePlan(StatusOr<Planned> plan, TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(const std::string failure, world->ShareText(plan.status().message()));
  if (!failure.empty()) return world->leads() ? plan : InvalidArgument(failure);
  RT_ASSIGN_OR_RETURN(const std::string text, world->ShareText(plan->SerializeAsString()));
  if (!plan->ParseFromString(text)) return DataLoss("rank 0 sends a plan that is none");
  return plan;
}

}  // namespace

std::string InWords(const HostChoice& choice, int hosts) {
  const Prediction& best = choice.best;
  const double one_host = choice.one_host.images_per_s();
  const std::string how = best.choice.hosts == hosts
                              ? Describe(best.choice)
                              : fmt::format("of {} hosts: {}", hosts, Describe(best.choice));
  const auto images = BatchOfRank(best) * static_cast<int64_t>(best.ranks);
  std::string words = fmt::format("{}, {} images in a step", how, images);
  if (best.choice.hosts > 1) {
    words += fmt::format(": predicted {:.2g} times one host", best.images_per_s() / one_host);
  }
  if (choice.even) {
    words += fmt::format(", with even shares {:.2g}", choice.even->images_per_s() / one_host);
  }
  const bool as_dense = best.choice.period == 1 && best.choice.scheme == kDenseScheme;
  if (!as_dense || best.choice.hosts < hosts) {
    words += fmt::format("; dense on all of them it would be {:.2g} times one host",
                         choice.dense.images_per_s() / one_host);
  }
  return words;
}

StatusOr<Planned> MakePlan(const LoadedConfig& loaded, const TrainingData* data, bool equal_shares,
                           TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(const int64_t largest, LargestThatFits(loaded, world));
  RT_ASSIGN_OR_RETURN(const PlannerFacts facts,
                      MeasureTogether(loaded, WhatToMeasure(loaded.config, data, largest), world));
  RT_ASSIGN_OR_RETURN(const auto seconds, world->Gather(StepSeconds(facts)));
  const auto choose = [&]() -> StatusOr<Planned> {
    const auto network = NetworkOf(*world);
    if (!network.ok()) {
      return InvalidArgument(network.status().message() + ", or train without --plan auto");
    }
    SearchSpace space = SpaceOf(loaded.config);
    space.divided = space.divided && equal_shares;
    space.fewest_images = FewestShownImages(facts);
    const ShareRule shares = equal_shares ? ShareRule::kFaster : ShareRule::kBySpeed;
    RT_ASSIGN_OR_RETURN(
        const HostChoice choice,
        ChooseHosts(facts, *network, SlownessOfHosts(seconds, world->topology()), space, shares));
    return PlanOf(choice, facts, loaded.config, *world);
  };
  return SharePlan(world->leads() ? choose() : Planned(), world);
}

StatusOr<Planned> EarlierOrNewPlan(const StatusOr<std::optional<Planned>>& earlier,
                                   const LoadedConfig& loaded, const TrainingData* data,
                                   bool equal_shares, TrainingWorld* world) {
  const bool is_new = earlier.ok() && !earlier->has_value();
  RT_ASSIGN_OR_RETURN(const auto all_new, world->ShareNumbers({is_new}, /*source_rank=*/0));
  if (all_new.at(0) != 0) return MakePlan(loaded, data, equal_shares, world);
  if (!earlier.ok()) return SharePlan(Status(earlier.status()), world);
  return SharePlan(earlier->value_or(Planned()), world);
}

StatusOr<LoadedConfig> WithPlan(const LoadedConfig& loaded, const Planned& plan, int world_size) {
  RunConfig config = loaded.config;
  std::vector<std::string> settings;
  if (!config.dist().has_planned()) settings.assign(plan.set().begin(), plan.set().end());
  if (plan.world() != world_size) settings.emplace_back("dist.model_parallel={}");
  *config.mutable_dist()->mutable_planned() = plan;
  return ParseRunConfig(PrintTextConfig(config), "the config with its plan", settings);
}

std::string Words(const Planned& plan, int world_size) {
  if (plan.world() == world_size) return plan.why();
  return fmt::format("made for {}, all of now {} train: {}", Counted(plan.world(), "rank"),
                     world_size, plan.why());
}

bool PlansSharesBySpeed(const DistConfig& config) {
  return config.plan() == DistConfig::AUTO && config.planned().by_speed();
}

RankGroup TrainingRanks(const Planned& plan, int world_size) {
  if (plan.world() != world_size) return RankGroup::World(world_size);
  return RankGroup({plan.rank().begin(), plan.rank().end()});
}

}  // namespace ringtail
