#include "apps/plan/run_advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "apps/plan/choice_settings.h"
#include "apps/plan/measure_facts.h"
#include "apps/plan/run_network.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"
#include "dist/planner/advice.h"
#include "dist/planner/host_choice.h"
#include "dist/planner/shown_choices.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {
namespace {

constexpr int64_t kSteps = 8;  // that are measured: of fewer, the deviation would be too small

// The scheme of the config: the first that MeasureFacts has measured, if the config has one.
std::string SchemeOf(const DistConfig& dist, const PlannerFacts& facts) {
  const CompressionConfig& own =
      UsesLocalRounds(dist) ? dist.local().compression() : dist.compression();
  return CompressesAnything(own) ? facts.scheme(0).name() : kDenseScheme;
}

Choice ChoiceOf(const RunConfig& config, const PlannerFacts& facts, const NetworkFacts& network,
                int64_t global_batch) {
  const DistConfig& dist = config.dist();
  Choice choice{.hosts = network.hosts, .global_batch = global_batch};
  choice.algorithm = dist.algorithm();
  choice.buckets = BucketsOf(dist);
  choice.scheme = SchemeOf(dist, facts);
  choice.divided = dist.model_parallel().linear() != ModelParallelConfig::WHOLE;
  if (UsesLocalRounds(dist)) {
    choice.period = dist.local().period();
    choice.overlap = dist.local().overlap();
    choice.rounds = true;
  }
  return choice;
}

// Of a rank that computes.
int64_t BatchOf(const BatchDivision& division) {
  return std::max<int64_t>(*std::ranges::max_element(division.all.batches), 1);
}

std::string WithBest(const std::string& advice, const Prediction& best, std::string_view flags) {
  if (best.choice.hosts == 1) return advice + "; train on one host";
  return fmt::format("{}; {} would make {:.4g}: {}", advice, Describe(best.choice),
                     best.images_per_s(), flags);
}

// What a plan for the batch of this run would choose from.
SearchSpace SpaceOf(const Generation& generation) {
  SearchSpace space = SpaceOf(generation.config());
  space.divided = space.divided && !generation.run->options.batch.by_speed;
  space.global_batches = {generation.division.own.global_batch};
  return space;
}

// What AUTO wants to choose itself, in a run that goes another way.
std::string WithoutOtherWays(const DistConfig& dist) {
  std::string flags;
  if (UsesLocalRounds(dist)) flags += " --set dist.local={}";
  if (CompressesAnything(dist.compression())) flags += " --set dist.compression={}";
  if (dist.model_parallel().linear() != ModelParallelConfig::WHOLE) {
    flags += " --set dist.model_parallel={}";
  }
  return flags;
}

// With it train.batch is that of all ranks.
std::string PlanFlags(const Generation& generation) {
  const RunConfig& config = generation.config();
  const int64_t batch = generation.division.own.global_batch;
  std::string flags = "--plan auto";
  if (config.train().batch() != batch) flags += fmt::format(" --set train.batch={}", batch);
  flags += WithoutOtherWays(config.dist());
  return generation.run->options.batch.local > 0 ? flags + ", without --local-batch" : flags;
}

StatusOr<HostChoice> BestOf(const PlannerFacts& facts, const NetworkFacts& network,
                            const SearchSpace& space) {
  return ChooseHosts(facts, network, std::vector<double>(network.hosts, 1.0), space);
}

}  // namespace

Choice WithRounds(Choice choice, int local_steps) {
  choice.rounds = local_steps > 0;
  choice.period = std::max(local_steps, 1);
  choice.overlap = choice.overlap && choice.rounds;
  return choice;
}

StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network,
                                              const ServerPrediction& now, const SearchSpace& space,
                                              const std::string& plan_flags) {
  RT_ASSIGN_OR_RETURN(const HostChoice choice, BestOf(facts, network, space));
  std::string advice = Describe(now);
  const double one_host = choice.one_host.images_per_s();
  if (now.images_per_s < one_host) {
    advice += fmt::format(", {:.2g} times one host alone ({:.4g})", now.images_per_s / one_host,
                          one_host);
  } else if (choice.best.images_per_s() < kWorthSaying * now.images_per_s) {
    return std::optional<std::string>();
  }
  return std::optional(WithBest(advice, choice.best,
                                "--set dist.asynchronous.rule=NONE " + plan_flags +
                                    ", unless some hosts are much slower than others"));
}

StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network, const Choice& current,
                                              const SearchSpace& space,
                                              const std::string& plan_flags) {
  StepSimulator simulator(facts, network);
  RT_ASSIGN_OR_RETURN(const Prediction now, simulator.Simulate(current));
  RT_ASSIGN_OR_RETURN(const HostChoice choice, BestOf(facts, network, space));
  std::optional<std::string> advice = SlowerThanOne(now, choice.one_host);
  const double rate = choice.best.images_per_s();
  if (!advice && rate < kWorthSaying * now.images_per_s()) return advice;
  if (!advice) {
    advice = fmt::format("{}: predicted {:.4g} images/s, because {}", Describe(current),
                         now.images_per_s(), Reason(now));
  }
  return std::optional(WithBest(*advice, choice.best, plan_flags));
}

StatusOr<std::optional<std::string>> AdviseRun(const Generation& generation,
                                               PredictPeriod* predict) {
  const RunConfig& config = generation.config();
  const bool decided =
      config.dist().has_planned() ||
      (UsesLocalRounds(config.dist()) && config.dist().local().period_rule() != LocalConfig::FIXED);
  const bool asked = predict != nullptr || !decided;
  if (generation.run->stage.divides()) return std::optional<std::string>();  // stage_cut.h predicts
  // Of layers that are divided, the planner knows the dense form alone.
  if (generation.run->shards.divides() && CompressesAnything(config.dist().compression())) {
    return std::optional<std::string>();
  }
  if (generation.world->topology().hosts() < 2 || !asked) return std::optional<std::string>();
  const ScopedPhase measuring(generation.world->progress(), Phase::kSetUp);
  RT_ASSIGN_OR_RETURN(const NetworkFacts network, NetworkOf(*generation.world));
  const int64_t parts = config.train().accumulation(), batch = BatchOf(generation.division);
  RT_ASSIGN_OR_RETURN(const PlannerFacts facts,
                      MeasureFacts(*generation.run->options.loaded,
                                   {.largest_batch = std::max<int64_t>(batch / parts, 1),
                                    .image_size = generation.plan.PhaseAt(0).image_size,
                                    .steps = kSteps,
                                    .fractions = 1,
                                    .data = generation.run->options.data,
                                    .ranks_here = RanksHere(*generation.world),
                                    .frozen = generation.run->frozen,
                                    .schemes = decided ? std::vector<std::string>()
                                                       : ShownSchemes(config.net().name())}));
  if (UsesServers(config.dist().asynchronous())) {
    ServerChoice choice =
        ServerChoiceOf(config.dist().asynchronous(), network.hosts * network.ranks_per_host, batch);
    choice.scheme = SchemeOf(config.dist(), facts);
    return AdviseOn(facts, network, PredictServers(facts, network, choice), SpaceOf(config),
                    "--plan auto" + WithoutOtherWays(config.dist()));
  }
  const Choice current = ChoiceOf(config, facts, network, generation.division.own.global_batch);
  if (predict != nullptr) {
    PlannerFacts first_epoch = facts;  // its steps are compared
    first_epoch.set_epochs(1);
    auto simulator = std::make_shared<StepSimulator>(first_epoch, network);
    *predict = [simulator, current](int local_steps) {
      return simulator->Simulate(WithRounds(current, local_steps));
    };
  }
  if (decided) return std::optional<std::string>();
  return AdviseOn(facts, network, current, SpaceOf(generation), PlanFlags(generation));
}

}  // namespace ringtail
