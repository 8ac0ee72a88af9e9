#include "apps/plan/run_advice.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/plan/measure_facts.h"
#include "core/parallel_for.h"
#include "dist/config_check.h"
#include "dist/planner/advice.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {
namespace {

constexpr int64_t kKib = 1024;
constexpr int64_t kSteps = 3;  // that are measured
// Local steps: the fewest that make the hosts faster than one are proposed; AUTO takes up to 64.
constexpr int kPeriods[] = {8, 16, 32, 64};

// The scheme of the config, by the name that MeasureFacts gives it.
std::string SchemeOf(const PlannerFacts& facts) {
  return facts.scheme_size() > 0 ? facts.scheme(0).name() : kDenseScheme;
}

Choice ChoiceOf(const RunConfig& config, const PlannerFacts& facts, const NetworkFacts& network,
                int64_t global_batch) {
  const DistConfig& dist = config.dist();
  Choice choice{.hosts = network.hosts, .global_batch = global_batch};
  choice.algorithm = dist.algorithm();
  choice.buckets = {.bytes = dist.bucket_kib() * kKib, .end_bytes = dist.end_bucket_kib() * kKib};
  choice.scheme = SchemeOf(facts);
  if (UsesLocalRounds(dist)) {
    choice.period = dist.local().period();
    choice.overlap = dist.local().overlap();
  }
  return choice;
}

}  // namespace

StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network, const Choice& current) {
  StepSimulator simulator(facts, network);
  RT_ASSIGN_OR_RETURN(const Prediction now, simulator.Simulate(current));
  Choice alone = current;
  alone.hosts = 1;
  alone.period = 1;
  alone.overlap = false;
  RT_ASSIGN_OR_RETURN(const Prediction one_host, simulator.Simulate(alone));
  std::optional<std::string> advice = SlowerThanOne(now, one_host);
  if (!advice) return advice;
  for (const int period : kPeriods) {
    Choice rounds = current;
    rounds.period = period;
    rounds.overlap = true;
    RT_ASSIGN_OR_RETURN(const Prediction proposed, simulator.Simulate(rounds));
    if (proposed.images_per_s() <= one_host.images_per_s()) continue;
    return std::optional(fmt::format("{}; {} would make {:.4g}: --set dist.local.period_rule=AUTO",
                                     *advice, Describe(rounds), proposed.images_per_s()));
  }
  return std::optional(*advice + "; train on one host");
}

StatusOr<std::optional<std::string>> AdviseRun(const Generation& generation) {
  const RunConfig& config = generation.config();
  const Topology& topology = generation.world->topology();
  const bool finds_its_own =
      UsesLocalRounds(config.dist()) && config.dist().local().period_rule() != LocalConfig::FIXED;
  if (topology.hosts() < 2 || finds_its_own) return std::optional<std::string>();
  const ScopedPhase measuring(generation.world->progress(), Phase::kSetUp);
  const int64_t parts = config.train().accumulation();
  RT_ASSIGN_OR_RETURN(
      PlannerFacts facts,
      MeasureFacts(*generation.run->options.loaded,
                   {.largest_batch = std::max<int64_t>(generation.division.own.batch / parts, 1),
                    .image_size = generation.plan.PhaseAt(0).image_size,
                    .steps = kSteps,
                    .fractions = 1,
                    .all_schemes = false}));
  NetworkFacts network{.links = generation.world->network(),
                       .hosts = topology.hosts(),
                       .ranks_per_host = topology.world() / topology.hosts()};
  network.cores_per_host = static_cast<double>(NumComputeThreads()) * network.ranks_per_host;
  network.cpu_seconds_per_byte = kTypicalCpuSecondsPerByte;
  return AdviseOn(facts, network,
                  ChoiceOf(config, facts, network, generation.division.own.global_batch));
}

}  // namespace ringtail
