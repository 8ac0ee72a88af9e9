#include "apps/plan/run_advice.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "apps/plan/choice_settings.h"
#include "apps/plan/measure_facts.h"
#include "apps/plan/plan_flags.h"
#include "apps/plan/run_network.h"
#include "apps/trainer/local/local_period.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"
#include "dist/planner/decoded_share.h"
#include "dist/planner/host_choice.h"
#include "dist/planner/image_sizes.h"
#include "dist/planner/prediction.h"
#include "dist/planner/shown_choices.h"
#include "dist/planner/step_simulator.h"

namespace ringtail {
namespace {

constexpr int64_t kSteps = 8;  // that are measured: of fewer, the deviation would be too small
constexpr int kFractions = 3;  // measured of a batch that a plan would divide further

// As MeasureFacts names them.
std::string SchemeOf(const DistConfig& dist) {
  const CompressionConfig& own =
      UsesLocalRounds(dist) ? dist.local().compression() : dist.compression();
  return CompressesAnything(own) ? kOwnScheme : kDenseScheme;
}

std::string SchemeBeforeRounds(const DistConfig& dist) {
  if (!UsesLocalRounds(dist)) return SchemeOf(dist);
  return CompressesAnything(dist.compression()) ? kOwnSchemeBeforeRounds : kDenseScheme;
}

// Of a run that finds out how many steps hide its exchange, the most: it is as fast as it can be then.
int PeriodOf(const LocalConfig& local) {
  return local.period() > 0 ? local.period() : static_cast<int>(LocalPeriod::kMostAuto);
}

Choice ChoiceOf(const RunConfig& config, const NetworkFacts& network, int64_t global_batch) {
  const DistConfig& dist = config.dist();
  Choice choice{.hosts = network.hosts, .global_batch = global_batch};
  choice.algorithm = dist.algorithm();
  choice.buckets = BucketsOf(dist);
  choice.scheme = SchemeOf(dist);
  choice.divided = dist.model_parallel().linear() != ModelParallelConfig::WHOLE;
  choice.parts = config.train().accumulation();
  if (UsesLocalRounds(dist)) {
    choice.period = PeriodOf(dist.local());
    choice.overlap = dist.local().overlap();
    choice.rounds = true;
  }
  return choice;
}

// `current`: of the same run in rounds.
StepsBeforeRounds BeforeRounds(const RunConfig& config, const Choice& current) {
  StepsBeforeRounds before{.choice = WithRounds(current, 0)};
  before.choice.scheme = SchemeBeforeRounds(config.dist());
  if (UsesLocalRounds(config.dist())) {
    before.share = config.dist().local().start_epoch() / config.train().epochs();
  }
  return before;
}

// Of a rank that computes.
int64_t BatchOf(const BatchDivision& division) {
  return std::max<int64_t>(*std::ranges::max_element(division.all.batches), 1);
}

// `batch`: images of all ranks in a step of the run as it is set.
std::string WithBest(const std::string& advice, const Prediction& best, int64_t batch,
                     std::string_view flags) {
  const int64_t planned = best.choice.global_batch;
  const std::string instead = planned < batch ? fmt::format(" instead of {}", batch) : "";
  if (best.choice.hosts == 1) {
    return fmt::format("{}; train on {}, {} in a step{}, or beside hosts that wait: {}", advice,
                       Describe(best.choice), Counted(planned, "image"), instead, flags);
  }
  const std::string divided =
      instead.empty() ? ""
                      : fmt::format(" with the batch of one host, {} in a step of all hosts{}",
                                    Counted(planned, "image"), instead);
  return fmt::format("{}; {} would make {:.4g}{}: {}", advice, Describe(best.choice),
                     best.images_per_s(), divided, flags);
}

// What a plan for `batch` images in a step of this run would choose from.
SearchSpace SpaceOf(const Generation& generation, int64_t batch) {
  SearchSpace space = SpaceOf(generation.config());
  space.divided = space.divided && !generation.run->options.batch.by_speed;
  space.global_batches = {batch};
  return space;
}

// Not a run of one host, nor one of stages, which stage_cut.h predicts; of layers that are divided, the
// planner knows the dense form alone.
bool CanBePredicted(const Generation& generation) {
  const TrainingRun& run = *generation.run;
  const bool coded = CompressesAnything(generation.config().dist().compression());
  return generation.world->topology().hosts() > 1 && !run.stage.divides() &&
         !(run.shards.divides() && coded);
}

// Images of a step, or with servers of a gradient of every rank.
int64_t BatchOfAll(const Generation& generation) {
  if (!UsesServers(generation.config().dist().asynchronous())) {
    return generation.division.own.global_batch;
  }
  return BatchOf(generation.division) * generation.world->size();
}

// With steps of this rank's batch, and of a half of it and so on as a plan that divides a smaller one
// among the ranks would make. Other ranks wait meanwhile: each net that is created shows that this one moves.
StatusOr<PlannerFacts> FactsOf(const Generation& generation, int fractions) {
  const RunConfig& config = generation.config();
  const int64_t part = BatchOf(generation.division) / config.train().accumulation();
  return MeasureFacts(*generation.run->options.loaded,
                      {.largest_batch = std::max<int64_t>(part, 1),
                       .sizes = SizeSharesOf(config),
                       .steps = kSteps,
                       .fractions = fractions,
                       .data = generation.run->options.data,
                       .ranks_here = RanksHere(*generation.world),
                       .frozen = generation.run->frozen,
                       .schemes = config.dist().has_planned() ? std::vector<std::string>()
                                                              : ShownSchemes(TrainedNetOf(config)),
                       .set_up = [progress = generation.world->progress()](
                                     int64_t /*batch*/, int64_t /*image_size*/,
                                     const std::function<Status()>& create) -> Status {
                         if (progress != nullptr) progress->Tick();
                         return create();
                       }});
}

// Of the images that a rank loads in the epoch after so many, the share that it has to decode.
double DecodedInEpoch(double after, int64_t ranks, const PlannerFacts& facts) {
  const auto until = [&](double epochs) {
    if (epochs <= 0) return 0.0;
    const double share = ranks == facts.shards()
                             ? DecodedShareOfShard(ranks, epochs, facts.cached_share())
                             : DecodedShare(ranks, epochs, facts.cached_share());
    return epochs * share;
  };
  return until(after + 1) - until(after);
}

// Of the first epoch of each size of images, whose steps are compared.
StatusOr<std::shared_ptr<StepSimulator>> SimulatorOf(int64_t image_size, const PlannerFacts& facts,
                                                     const NetworkFacts& network,
                                                     const std::vector<SizeShare>& sizes) {
  std::optional<PlannerFacts> of_size = OfImageSize(facts, image_size);
  const auto size = std::ranges::find(sizes, image_size, &SizeShare::image_size);
  if (!of_size || size == sizes.end()) {
    return InvalidArgument(fmt::format("nothing was measured with images of {}", image_size));
  }
  const int64_t ranks = int64_t{network.hosts} * network.ranks_per_host;
  of_size->set_decode_cpu_s(of_size->decode_cpu_s() *
                            DecodedInEpoch(size->from_epoch, ranks, *of_size));
  of_size->set_epochs(1);  // of which all that are left are decoded
  return std::make_shared<StepSimulator>(*of_size, network);
}

// `current`: in rounds, if the run has any; `before`: without.
PredictPeriod PredictionOf(const PlannerFacts& facts, const NetworkFacts& network,
                           const Choice& current, const Choice& before,
                           const std::vector<SizeShare>& sizes) {
  // Kept, with its prices, while rounds change their length.
  return [=, simulator = std::shared_ptr<StepSimulator>(), simulated_size = int64_t{0}](
             int64_t image_size, int local_steps) mutable -> StatusOr<Prediction> {
    if (simulated_size != image_size) {
      RT_ASSIGN_OR_RETURN(simulator, SimulatorOf(image_size, facts, network, sizes));
      simulated_size = image_size;
    }
    return simulator->Simulate(local_steps > 0 ? WithRounds(current, local_steps) : before);
  };
}

ServerPrediction PredictionOfServers(const Generation& generation, const PlannerFacts& facts,
                                     const NetworkFacts& network) {
  const DistConfig& dist = generation.config().dist();
  ServerChoice choice = ServerChoiceOf(dist.asynchronous(), network.hosts * network.ranks_per_host,
                                       BatchOf(generation.division));
  choice.scheme = SchemeOf(dist);
  return PredictServers(facts, network, choice);
}

StatusOr<HostChoice> BestOf(const PlannerFacts& facts, const NetworkFacts& network,
                            const SearchSpace& space) {
  SearchSpace shown = space;
  shown.fewest_images = FewestShownImages(facts);
  return ChooseHosts(facts, network, std::vector<double>(network.hosts, 1.0), shown);
}

// The mean round of a run that begins without.
StatusOr<Prediction> PredictRun(StepSimulator* simulator, const Choice& current,
                                const StepsBeforeRounds& before) {
  RT_ASSIGN_OR_RETURN(const Prediction in_rounds, simulator->Simulate(current));
  if (before.share <= 0) return in_rounds;
  RT_ASSIGN_OR_RETURN(const Prediction step, simulator->Simulate(before.choice));
  // `current.period` such steps are as many as a round has.
  const std::array predictions = {in_rounds, step};
  const std::array shares = {1 - before.share, before.share * current.period};
  return MeanOf(predictions, shares);
}

}  // namespace

Choice WithRounds(Choice choice, int local_steps) {
  choice.rounds = local_steps > 0;
  choice.period = std::max(local_steps, 1);
  choice.overlap = choice.overlap && choice.rounds;
  return choice;
}

Choice WithShare(Choice choice, int64_t own, int64_t ranks) {
  choice.global_batch = std::max<int64_t>(own, 1) * ranks;
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
  return std::optional(WithBest(advice, choice.best, space.global_batches.front(),
                                plan_flags + ", unless some hosts are much slower than others"));
}

StatusOr<std::optional<std::string>> AdviseOn(const PlannerFacts& facts,
                                              const NetworkFacts& network, const Choice& current,
                                              const SearchSpace& space,
                                              const std::string& plan_flags,
                                              const StepsBeforeRounds& before) {
  StepSimulator simulator(facts, network);
  RT_ASSIGN_OR_RETURN(const Prediction now, PredictRun(&simulator, current, before));
  RT_ASSIGN_OR_RETURN(const HostChoice choice, BestOf(facts, network, space));
  std::optional<std::string> advice = SlowerThanOne(now, choice.one_host);
  const double rate = choice.best.images_per_s();
  if (!advice && rate < kWorthSaying * now.images_per_s()) return advice;
  if (!advice) {
    advice = fmt::format("{}: predicted {:.4g} images/s, because {}", Describe(current),
                         now.images_per_s(), Reason(now));
  }
  if (before.share > 0) {
    advice = fmt::format("with rounds after {:.0f} % of its steps: {}", before.share * kPercent,
                         *advice);
  }
  return std::optional(WithBest(*advice, choice.best, current.global_batch, plan_flags));
}

StatusOr<std::optional<std::string>> AdviseRun(const Generation& generation,
                                               PredictPeriod* predict) {
  const RunConfig& config = generation.config();
  const bool follows_plan = config.dist().has_planned();
  const bool asked = predict != nullptr || !follows_plan;
  if (!CanBePredicted(generation) || !asked) return std::optional<std::string>();
  const ScopedPhase measuring(generation.world->progress(), Phase::kSetUp);
  RT_ASSIGN_OR_RETURN(const NetworkFacts network, NetworkOf(*generation.world));
  const int64_t all = BatchOfAll(generation), planned = BatchOfOneHost(config, all);
  RT_ASSIGN_OR_RETURN(
      const PlannerFacts facts,
      FactsOf(generation, /*fractions=*/follows_plan || planned == all ? 1 : kFractions));
  const SearchSpace space = SpaceOf(generation, planned);
  const std::string flags =
      PlanFlags(config, planned, /*local_batch=*/generation.run->options.batch.local > 0);
  if (UsesServers(config.dist().asynchronous())) {
    return AdviseOn(facts, network, PredictionOfServers(generation, facts, network), space, flags);
  }
  const Choice current = ChoiceOf(config, network, all);
  const StepsBeforeRounds before = BeforeRounds(config, current);
  if (predict != nullptr) {
    const int64_t own = generation.division.own.batch;
    const auto of_this_rank = [&](const Choice& choice) {
      return WithShare(choice, own, generation.world->size());
    };
    *predict = PredictionOf(facts, network, of_this_rank(current), of_this_rank(before.choice),
                            SizeSharesOf(config));
  }
  if (follows_plan) return std::optional<std::string>();
  return AdviseOn(facts, network, current, space, flags, before);
}

}  // namespace ringtail
