#include "apps/plan/run_advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "apps/plan/choice_settings.h"
#include "apps/plan/measure_facts.h"
#include "apps/plan/run_network.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/planner/advice.h"
#include "dist/planner/host_choice.h"
#include "dist/planner/shown_choices.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {
namespace {

constexpr int64_t kSteps = 3;  // that are measured

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
  if (UsesLocalRounds(dist)) {
    choice.period = dist.local().period();
    choice.overlap = dist.local().overlap();
  }
  return choice;
}

}  // namespace

StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network, const Choice& current,
                                              const SearchSpace& space) {
  StepSimulator simulator(facts, network);
  RT_ASSIGN_OR_RETURN(const Prediction now, simulator.Simulate(current));
  RT_ASSIGN_OR_RETURN(const HostChoice choice,
                      ChooseHosts(facts, network, std::vector<double>(network.hosts, 1.0), space));
  std::optional<std::string> advice = SlowerThanOne(now, choice.one_host);
  const double rate = choice.best.images_per_s();
  if (!advice && rate < kWorthSaying * now.images_per_s()) return advice;
  if (!advice) {
    advice = fmt::format("{}: predicted {:.4g} images/s, because {}", Describe(current),
                         now.images_per_s(), Reason(now));
  }
  if (choice.best.choice.hosts == 1) return std::optional(*advice + "; train on one host");
  return std::optional(fmt::format("{}; {} would make {:.4g}: --plan auto", *advice,
                                   Describe(choice.best.choice), rate));
}

StatusOr<std::optional<std::string>> AdviseRun(const Generation& generation,
                                               PredictPeriod* predict) {
  const RunConfig& config = generation.config();
  const bool decided =
      config.dist().has_planned() ||
      (UsesLocalRounds(config.dist()) && config.dist().local().period_rule() != LocalConfig::FIXED);
  const bool asked = predict != nullptr || !decided;
  if (generation.world->topology().hosts() < 2 || !asked) return std::optional<std::string>();
  const ScopedPhase measuring(generation.world->progress(), Phase::kSetUp);
  RT_ASSIGN_OR_RETURN(const NetworkFacts network, NetworkOf(*generation.world));
  const int64_t parts = config.train().accumulation();
  RT_ASSIGN_OR_RETURN(
      const PlannerFacts facts,
      MeasureFacts(
          *generation.run->options.loaded,
          {.largest_batch = std::max<int64_t>(generation.division.own.batch / parts, 1),
           .image_size = generation.plan.PhaseAt(0).image_size,
           .steps = kSteps,
           .fractions = 1,
           .data = generation.run->options.data,
           .ranks_here = RanksHere(*generation.world),
           .schemes = decided ? std::vector<std::string>() : ShownSchemes(config.net().name())}));
  const Choice current = ChoiceOf(config, facts, network, generation.division.own.global_batch);
  if (predict != nullptr) {
    auto simulator = std::make_shared<StepSimulator>(facts, network);
    *predict = [simulator, choice = current, rounds_overlap = current.overlap](int period) mutable {
      choice.period = period;
      choice.overlap = rounds_overlap && period > 1;
      return simulator->Simulate(choice);
    };
  }
  if (decided) return std::optional<std::string>();
  return AdviseOn(facts, network, current, SpaceOf(config));
}

}  // namespace ringtail
