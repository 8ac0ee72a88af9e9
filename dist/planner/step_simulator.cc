#include "dist/planner/step_simulator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/round.h"
#include "dist/planner/slowest_of.h"

namespace ringtail {
namespace {

constexpr int64_t kRollCallElements = 22;  // 88 bytes per rank
constexpr int64_t kLossElements = 6;       // loss, correct and count, as doubles

NetworkFacts WithoutSharing(NetworkFacts network, const SimulatorOptions& options) {
  if (!options.shares_cores) network.sending = {};
  return network;
}

}  // namespace

StepSimulator::StepSimulator(const PlannerFacts& facts, const NetworkFacts& network,
                             const SimulatorOptions& options)
    : network_(WithoutSharing(network, options)),
      sizes_(TimetablesOf(facts, network.cores_per_rank())),
      parameters_(ParametersOf(facts)),
      buffer_elements_(facts.buffer_elements()),
      synchronized_channels_(facts.synchronized_channels().begin(),
                             facts.synchronized_channels().end()),
      busy_delay_(options.shares_cores ? facts.wake_delay_s() : 0),
      shares_cores_(options.shares_cores),
      shares_(options.shares) {
  schemes_.emplace(kDenseScheme, PlannedScheme::Dense(parameters_));
  for (const SchemeFacts& scheme : facts.scheme()) {
    schemes_.emplace(scheme.name(), PlannedScheme::Of(scheme, parameters_));
  }
}

Status StepSimulator::Check(const Choice& choice) const {
  if (choice.hosts < 1 || choice.hosts > network_.hosts) {
    return InvalidArgument(
        fmt::format("{} hosts of {} cannot train", choice.hosts, network_.hosts));
  }
  const int64_t ranks = int64_t{choice.hosts} * network_.ranks_per_host;
  if (choice.global_batch < ranks) {
    return InvalidArgument(
        fmt::format("a batch of {} images is too small for {} ranks: each needs "
                    "one at least",
                    choice.global_batch, ranks));
  }
  if (choice.parts < 0) return InvalidArgument("a step cannot have a negative number of parts");
  if (choice.period < 1 || choice.buckets.bytes < 1 || choice.buckets.end_bytes < 1) {
    return InvalidArgument("the period and the sizes of buckets must be at least 1");
  }
  if (choice.divided && (choice.scheme != kDenseScheme || choice.has_rounds())) {
    return InvalidArgument("with layers divided, the other gradients travel dense, in every step");
  }
  if (choice.divided && choice.by_speed) {
    return InvalidArgument("ranks that divide layers compute them on as many images each");
  }
  if (schemes_.contains(choice.scheme)) return OkStatus();
  std::vector<std::string> names;
  for (const auto& [name, scheme] : schemes_) names.push_back(name);
  return InvalidArgument(fmt::format("the facts have no scheme '{}'; they have {}", choice.scheme,
                                     fmt::join(names, ", ")));
}

ExchangeWorld StepSimulator::WorldOf(const Choice& choice) const {
  const LinkModel& link =
      choice.hosts > 1 ? network_.links.between_hosts : network_.links.within_host;
  return {.ranks = choice.hosts * network_.ranks_per_host,
          .cores = network_.cores_per_rank(),
          .seconds_per_byte = link.seconds_per_byte,
          .sending = network_.sending};
}

// Gradients travel beside the backward of the last part, so that fewer parts than those that compute fastest
// may be faster. The fastest rank must have the memory for its part of a step, too.
std::vector<int64_t> StepSimulator::PartsToTry(const Choice& choice) const {
  if (choice.parts > 0) return {choice.parts};
  const int64_t images = ImagesOf(choice);
  const int64_t largest = choice.by_speed ? ImagesOfFastest(shares_, images, 1) : images;
  const int64_t least = any_size().EqualParts(largest).front();
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = least;
  for (const TimetableOfSize& size : sizes_) {
    const int64_t fastest = std::max(least, size.timetable.PartsOf(images));
    fewest = std::min(fewest, fastest);
    most = std::max(most, fastest);
  }
  const bool overlaps = int64_t{choice.hosts} * network_.ranks_per_host > 1 && !choice.has_rounds();
  if (overlaps) fewest = least;
  if (fewest == most) return {most};
  std::vector<int64_t> numbers = any_size().EqualParts(images);
  std::erase_if(numbers, [&](int64_t parts) { return parts < fewest || parts > most; });
  return numbers.empty() ? std::vector<int64_t>{least} : numbers;
}

StepSimulator::OwnStep StepSimulator::OwnStepOf(const StepTimetable& timetable,
                                                const Choice& choice, int64_t parts) const {
  const int64_t even = ImagesOf(choice), ranks = int64_t{choice.hosts} * network_.ranks_per_host;
  if (!choice.by_speed) return OwnStepWith(timetable, choice, ranks, even, parts, 1);
  OwnStep slowest =
      OwnStepWith(timetable, choice, ranks, ImagesOfSlowest(shares_, even, parts), parts, 1);
  OwnStep fastest = OwnStepWith(timetable, choice, ranks, ImagesOfFastest(shares_, even, parts),
                                parts, shares_.slowest / shares_.fastest);
  return fastest.alone > slowest.alone ? fastest : slowest;
}

StepSimulator::OwnStep StepSimulator::OwnStepWith(const StepTimetable& timetable,
                                                  const Choice& choice, int64_t ranks,
                                                  int64_t images, int64_t parts, double factor) {
  OwnStep own{.times = Scaled(timetable.TimesAt(images, ranks, parts), factor)};
  // Averaged weights are updated once in a round.
  if (choice.has_rounds()) own.times.update -= own.times.average * (1 - 1.0 / choice.period);
  own.before_backward = own.times.forward + own.times.earlier_backward;
  own.alone = timetable.data_wait() + own.before_backward + own.times.backward + own.times.update;
  return own;
}

int64_t StepSimulator::ImagesOf(const Choice& choice) const {
  return CeilDivide(choice.global_batch, int64_t{choice.hosts} * network_.ranks_per_host);
}

DividedLayers StepSimulator::DividedOf(const Choice& choice, CollectivePrices* prices) const {
  if (!choice.divided) return {};
  return DivideLayers(parameters_, ImagesOf(choice), choice.hosts * network_.ranks_per_host,
                      prices);
}

// The gradients that are added up, when layers are divided. (They are buckets of their own in the
// arena, too: core/parameter.h.)
ExchangeJobs StepSimulator::JobsOfKept(const DividedLayers& divided, const Choice& choice,
                                       CollectivePrices* prices) const {
  std::vector<Parameter> kept;
  int64_t offset = 0;
  for (const size_t i : divided.kept) {
    kept.push_back(parameters_[i]);
    kept.back().offset = offset;
    offset += kept.back().elements;
  }
  ExchangeJobs jobs =
      MakeExchangeJobs(kept, PlannedScheme::Dense(kept), choice.buckets, WorldOf(choice), prices);
  for (size_t& last : jobs.last_parameter) last = divided.kept[last];
  return jobs;
}

StatusOr<CollectivePrices*> StepSimulator::PricesOf(const Choice& choice) {
  const PriceKey key{choice.hosts, choice.algorithm};
  const int64_t ranks = int64_t{choice.hosts} * network_.ranks_per_host;
  auto found = prices_.find(key);
  if (found == prices_.end()) {
    RT_ASSIGN_OR_RETURN(
        CollectivePrices prices,
        CollectivePrices::Create(choice.algorithm,
                                 {.hosts = choice.hosts, .ranks_per_host = network_.ranks_per_host},
                                 network_.links, busy_delay_ * DelayOfRounds(ranks)));
    found = prices_.emplace(key, std::move(prices)).first;
  }
  return &found->second;
}

StatusOr<const ExchangeJobs*> StepSimulator::JobsOf(const Choice& choice) {
  const JobsKey key{
      choice.hosts,         choice.algorithm,         choice.scheme,
      choice.buckets.bytes, choice.buckets.end_bytes, choice.divided ? ImagesOf(choice) : 0};
  auto found = jobs_.find(key);
  if (found == jobs_.end()) {
    RT_ASSIGN_OR_RETURN(CollectivePrices* const prices, PricesOf(choice));
    const PlannedScheme& scheme = schemes_.find(choice.scheme)->second;
    ExchangeJobs jobs = choice.divided ? JobsOfKept(DividedOf(choice, prices), choice, prices)
                                       : MakeExchangeJobs(parameters_, scheme, choice.buckets,
                                                          WorldOf(choice), prices);
    found = jobs_.emplace(key, std::move(jobs)).first;
  }
  return &found->second;
}

CommunicationWork StepSimulator::RollCall(const Choice& choice, CollectivePrices* prices) const {
  const int64_t ranks = int64_t{choice.hosts} * network_.ranks_per_host;
  return WorkOf(prices->Allgather(ranks * kRollCallElements), network_.sending,
                network_.cores_per_rank());
}

// What travels before the buckets: loss, counts and running statistics; of a round the roll call, which
// has the loss and counts of its steps, and the statistics.
CommunicationJob StepSimulator::Statistics(const Choice& choice, CollectivePrices* prices,
                                           double* sent_bytes) const {
  CommunicationJob job;
  if (choice.has_rounds()) job.Add(RollCall(choice, prices));
  const CompressionConfig& compression = schemes_.find(choice.scheme)->second.config;
  // A mean over the steps that statistics wait for.
  const int64_t buffers = buffer_elements_ / compression.statistics_every_steps();
  const std::vector<int64_t> arrays = choice.has_rounds()
                                          ? std::vector<int64_t>{buffer_elements_}
                                          : std::vector<int64_t>{kLossElements, buffers};
  for (const int64_t elements : arrays) {
    const CollectivePrice& price = prices->Allreduce(elements);
    *sent_bytes += static_cast<double>(price.sent_bytes);
    job.Add(WorkOf(price, network_.sending, network_.cores_per_rank()));
  }
  return job;
}

// Steps of a round vary independently of one another.
double StepSimulator::WaitingFor(const Prediction& prediction, double compute) const {
  return SlowestOf(static_cast<int64_t>(prediction.ranks)) * any_size().deviation() * compute /
         std::sqrt(prediction.choice.period);
}

// If the term of shared cores is left out, communication takes none.
OverlapTimes StepSimulator::Beside(double compute, std::vector<CommunicationJob> jobs) const {
  for (CommunicationJob& job : jobs) {
    for (CommunicationWork& work : job.work) {
      if (!shares_cores_) work.cores = 0;
    }
  }
  return Overlap(compute, network_.cores_per_rank(), jobs);
}

// Returns what is left of the update once the norm of gradients is known: the roll call travels beside
// it.
double StepSimulator::SimulateStep(const OwnStep& own, ExchangeJobs jobs,
                                   CommunicationJob statistics, Prediction* prediction) const {
  size_t next = 0;  // parameter
  for (size_t i = 0; i < jobs.buckets.size(); ++i) {
    jobs.buckets[i].ready = std::min(own.times.ready[jobs.last_parameter[i]], own.times.backward);
    for (; next <= jobs.last_parameter[i] && !own.times.prepare.empty(); ++next) {
      jobs.buckets[i].unlocks += own.times.prepare[next];
    }
  }
  jobs.buckets.insert(jobs.buckets.begin(), std::move(statistics));
  const OverlapTimes overlap = Beside(own.times.backward, std::move(jobs.buckets));
  PredictedSeconds& seconds = prediction->seconds;
  const double prepared = std::accumulate(own.times.prepare.begin(), own.times.prepare.end(), 0.0);
  const double longer = prepared > 0 ? own.times.preparing * overlap.unlocked / prepared : 0;
  seconds.update += longer;
  seconds.waiting = WaitingFor(*prediction, own.alone);
  seconds.contention = overlap.contention(own.times.backward);
  seconds.wire = overlap.exposed_wire;
  seconds.coding = overlap.exposed_coding;
  return std::max(0.0, seconds.update - overlap.unlocked - own.times.norm);
}

void StepSimulator::SimulateRound(const OwnStep& own, ExchangeJobs jobs,
                                  CommunicationJob statistics, Prediction* prediction) const {
  const double compute = own.alone * prediction->choice.period;
  jobs.buckets.insert(jobs.buckets.begin(), std::move(statistics));
  // An overlapped exchange begins when the slowest rank has ended the round before.
  const double waiting = WaitingFor(*prediction, compute);
  const bool overlapped = prediction->choice.overlap;
  for (CommunicationJob& job : jobs.buckets) {
    job.ready = overlapped ? std::min(waiting, compute) : compute;
  }
  const OverlapTimes overlap = Beside(compute, std::move(jobs.buckets));
  PredictedSeconds& seconds = prediction->seconds;
  seconds.waiting = overlapped ? 0 : waiting;
  seconds.contention = overlap.contention(compute);
  seconds.wire = overlap.exposed_wire;
  seconds.coding = overlap.exposed_coding;
  seconds.merge = any_size().merge();
}

// Activations travel between forward's and backward's layers; a rank updates its slice alone.
void StepSimulator::AddDivided(const DividedLayers& divided, Prediction* prediction) {
  if (!divided.divides()) return;
  const double travel = divided.forward_seconds + divided.backward_seconds;
  prediction->sent_bytes += divided.sent_bytes;
  prediction->communication += travel;
  prediction->seconds.activations = travel;
  prediction->seconds.update *= 1 - divided.share + divided.share / prediction->ranks;
}

// Forward waits for the sums of values and squares over all ranks, backward for as many others, and
// both for their count: doubles (layers/batch_norm.h). Every part has its own.
void StepSimulator::AddSynchronizedNorms(CollectivePrices* prices, Prediction* prediction) const {
  double seconds = 0, sent = 0;
  for (const int64_t channels : synchronized_channels_) {
    const CollectivePrice& price = prices->Allreduce(2 * (2 * channels + 1));
    seconds += 2 * price.seconds;
    sent += 2 * static_cast<double>(price.sent_bytes);
  }
  const double times = prediction->choice.period * static_cast<double>(prediction->parts);
  prediction->seconds.batch_norm = seconds * times;
  prediction->communication += seconds * times;
  prediction->sent_bytes += sent * times;
}

StatusOr<Prediction> StepSimulator::Simulate(const Choice& choice) {
  RT_RETURN_IF_ERROR(Check(choice));
  std::optional<Prediction> fastest;
  for (const int64_t parts : PartsToTry(choice)) {
    RT_ASSIGN_OR_RETURN(Prediction prediction, SimulateParts(choice, parts));
    if (!fastest || prediction.seconds.sum() < fastest->seconds.sum()) {
      fastest = std::move(prediction);
    }
  }
  return *std::move(fastest);
}

// The mean of all sizes of images.
StatusOr<Prediction> StepSimulator::SimulateParts(const Choice& choice, int64_t parts) {
  std::vector<Prediction> predictions;
  std::vector<double> shares;
  for (const TimetableOfSize& size : sizes_) {
    RT_ASSIGN_OR_RETURN(const auto of_size, SimulateSize(size.timetable, choice, parts));
    predictions.push_back(of_size);
    shares.push_back(size.share);
  }
  return MeanOf(predictions, shares);
}

StatusOr<Prediction> StepSimulator::SimulateSize(const StepTimetable& timetable,
                                                 const Choice& choice, int64_t parts) {
  const OwnStep own = OwnStepOf(timetable, choice, parts);
  const double steps = choice.period;
  const int64_t ranks = int64_t{choice.hosts} * network_.ranks_per_host;
  Prediction prediction{
      .choice = choice,
      .seconds = {.data_wait = steps * timetable.data_wait(),
                  .forward = steps * own.times.forward,
                  .backward = steps * (own.times.earlier_backward + own.times.backward),
                  .update = steps * own.times.update},
      .images = steps * static_cast<double>(choice.global_batch),
      .ranks = static_cast<double>(ranks),
      .parts = parts};
  if (ranks == 1) return prediction;
  RT_ASSIGN_OR_RETURN(CollectivePrices* const prices, PricesOf(choice));
  RT_ASSIGN_OR_RETURN(const ExchangeJobs* const jobs, JobsOf(choice));
  prediction.sent_bytes = jobs->sent_bytes;
  prediction.communication = jobs->seconds();
  AddDivided(DividedOf(choice, prices), &prediction);
  AddSynchronizedNorms(prices, &prediction);
  CommunicationJob statistics = Statistics(choice, prices, &prediction.sent_bytes);
  prediction.communication += statistics.seconds();
  if (choice.has_rounds()) {
    SimulateRound(own, *jobs, std::move(statistics), &prediction);
  } else {
    const double rest = SimulateStep(own, *jobs, std::move(statistics), &prediction);
    CommunicationJob roll_call;
    roll_call.Add(RollCall(choice, prices));
    prediction.seconds.roll_call = Beside(rest, {roll_call}).end - rest;
  }
  return prediction;
}

StatusOr<double> StepSimulator::LeastSeconds(const Choice& choice) {
  RT_RETURN_IF_ERROR(Check(choice));
  const double exchange = choice.divided ? 0 : LeastExchange(choice);
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t parts : PartsToTry(choice)) {
    double mean = 0;
    for (const TimetableOfSize& size : sizes_) {
      const OwnStep own = OwnStepOf(size.timetable, choice, parts);
      mean += size.share * LeastOf(choice, own, exchange);
    }
    least = std::min(least, mean);
  }
  return least;
}

double StepSimulator::LeastOf(const Choice& choice, const OwnStep& own, double exchange_seconds) {
  const double compute = own.alone * choice.period;
  if (choice.divided) return compute - own.times.update;  // at least; the update is divided, too
  if (choice.overlap) return std::max(compute, exchange_seconds);
  if (choice.has_rounds()) return compute + exchange_seconds;
  // Of a step, backward hides the exchange, and so does what can be prepared of the update.
  const double prepared = std::accumulate(own.times.prepare.begin(), own.times.prepare.end(), 0.0);
  return compute + std::max(0.0, exchange_seconds - own.times.backward - prepared);
}

double StepSimulator::LeastExchange(const Choice& choice) {
  const std::pair key{choice.hosts, choice.scheme};
  auto found = least_.find(key);
  if (found == least_.end()) {
    const double least = LeastExchangeSeconds(parameters_, schemes_.find(choice.scheme)->second,
                                              WorldOf(choice), choice.hosts);
    found = least_.emplace(key, least).first;
  }
  return found->second;
}

}  // namespace ringtail
