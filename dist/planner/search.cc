#include "dist/planner/search.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr int kEachHostUpTo = 32;
constexpr double kAsFast = 0.98;

auto Gentleness(const Prediction& p) {
  return std::tuple(p.choice.period, p.choice.overlap, p.choice.scheme != kDenseScheme,
                    p.choice.divided, p.choice.global_batch, p.choice.hosts);
}

// Buckets and algorithm change nothing but the time.
bool TrainAlike(const Choice& a, const Choice& b) {
  return a.hosts == b.hosts && a.global_batch == b.global_batch && a.scheme == b.scheme &&
         a.period == b.period && a.overlap == b.overlap && a.divided == b.divided &&
         a.by_speed == b.by_speed;
}

bool Faster(const Prediction& a, const Prediction& b) {
  if (a.images_per_s() != b.images_per_s()) return a.images_per_s() > b.images_per_s();
  return Gentleness(a) < Gentleness(b);
}

// The choices that are listed, and those that may be recommended.
class Candidates {
 public:
  explicit Candidates(size_t keep) : keep_(keep) {}

  // Whether a choice that trains at most so many images per second may belong to either.
  bool MayHold(double images_per_s) const {
    return listed_.size() < keep_ || images_per_s >= listed_.back().images_per_s() ||
           images_per_s >= kAsFast * listed_.front().images_per_s();
  }

  void Add(const Prediction& prediction) {
    List(prediction);
    if (prediction.images_per_s() >= kAsFast * listed_.front().images_per_s()) {
      near_.push_back(prediction);
    }
  }

  void MoveTo(SearchResult* result) {
    result->recommended = Gentlest(near_);
    result->best = std::move(listed_);
  }

 private:
  void List(const Prediction& prediction) {
    const auto alike = std::ranges::find_if(listed_, [&](const Prediction& other) {
      return TrainAlike(other.choice, prediction.choice);
    });
    if (alike != listed_.end()) {
      if (!Faster(prediction, *alike)) return;
      listed_.erase(alike);
    }
    listed_.insert(std::ranges::upper_bound(listed_, prediction, Faster), prediction);
    if (listed_.size() > keep_) listed_.pop_back();
  }

  const size_t keep_;
  std::vector<Prediction> listed_;  // fastest first
  std::vector<Prediction> near_;    // those that were near the fastest when they came
};

// Each of `choices` with each of `values` in its `field`.
template <typename Field>
std::vector<Choice> WithEach(const std::vector<Choice>& choices, const std::vector<Field>& values,
                             Field Choice::*field) {
  std::vector<Choice> all;
  for (const Choice& choice : choices) {
    for (const auto& value : values) all.emplace_back(choice).*field = value;
  }
  return all;
}

// The choices of several ranks; longest periods first, which are the fastest, so that pruning begins
// early.
std::vector<Choice> ChoicesOf(const SearchSpace& space, int ranks_per_host) {
  std::vector<int> periods = space.periods;
  std::ranges::sort(periods, std::greater<>());
  std::vector<Choice> choices = WithEach({Choice()}, periods, &Choice::period);
  choices = WithEach(choices, std::vector<bool>{true, false}, &Choice::overlap);
  std::erase_if(choices, [&](const Choice& choice) {
    return choice.overlap && (!space.overlap || choice.period == 1);
  });
  if (space.divided && !space.by_speed) choices.push_back({.divided = true});
  choices = WithEach(choices, space.hosts, &Choice::hosts);
  for (Choice& choice : choices) choice.by_speed = space.by_speed && choice.hosts > 1;
  choices = WithEach(choices, space.global_batches, &Choice::global_batch);
  std::erase_if(choices, [&](const Choice& choice) {
    const int64_t ranks = int64_t{choice.hosts} * ranks_per_host;
    const int64_t fewest = choice.hosts > 1 ? space.fewest_images : 1;
    return ranks == 1 || choice.global_batch < ranks * fewest;
  });
  choices = WithEach(choices, space.schemes, &Choice::scheme);
  std::erase_if(choices, [](const Choice& choice) {
    return choice.divided && choice.scheme != kDenseScheme;
  });
  choices = WithEach(choices, space.buckets, &Choice::buckets);
  return WithEach(choices, space.algorithms, &Choice::algorithm);
}

}  // namespace

SearchSpace DefaultSpace(const PlannerFacts& facts, const NetworkFacts& network, int64_t batch,
                         int most_period) {
  SearchSpace space{.global_batches = {batch}};
  for (int hosts = 1; hosts <= std::min(network.hosts, kEachHostUpTo); ++hosts) {
    space.hosts.push_back(hosts);
  }
  for (int hosts = 2 * kEachHostUpTo; hosts < network.hosts; hosts *= 2) {
    space.hosts.push_back(hosts);
  }
  if (network.hosts > kEachHostUpTo) space.hosts.push_back(network.hosts);
  for (const SchemeFacts& scheme : facts.scheme()) space.schemes.push_back(scheme.name());
  constexpr int64_t kMib = 1 << 20;
  space.buckets = {{.bytes = 2 * kMib, .end_bytes = kMib / 4},
                   BucketOptions(),
                   {.bytes = 32 * kMib, .end_bytes = 4 * kMib}};
  // Ranks that take steps of their own share no statistics.
  const bool may_go_alone = facts.synchronized_channels().empty();
  for (int period = 2; may_go_alone && period <= most_period; period *= 2) {
    space.periods.push_back(period);
  }
  space.divided = facts.elementwise_update();
  return space;
}

StatusOr<SearchResult> Search(StepSimulator* simulator, const SearchSpace& space) {
  RT_CHECK(space.keep > 0 && !space.global_batches.empty(), "a space has choices");
  const int ranks_per_host = simulator->network().ranks_per_host;
  SearchResult result;
  Candidates candidates(space.keep);
  const int64_t batch = space.global_batches.front();
  if (batch < ranks_per_host) {
    return InvalidArgument("the batch is smaller than the ranks of a host");
  }
  RT_ASSIGN_OR_RETURN(result.one_host, simulator->Simulate({.global_batch = batch,
                                                            .algorithm = space.algorithms.front(),
                                                            .buckets = space.buckets.front()}));
  result.simulated = 1;
  candidates.Add(result.one_host);
  for (const Choice& choice : ChoicesOf(space, ranks_per_host)) {
    RT_ASSIGN_OR_RETURN(const double least, simulator->LeastSeconds(choice));
    const double images = static_cast<double>(choice.global_batch) * choice.period;
    if (!candidates.MayHold(images / least)) {
      ++result.pruned;
      continue;
    }
    RT_ASSIGN_OR_RETURN(const Prediction prediction, simulator->Simulate(choice));
    ++result.simulated;
    candidates.Add(prediction);
  }
  candidates.MoveTo(&result);
  return result;
}

const Prediction& Gentlest(std::span<const Prediction> predictions) {
  const double fastest =
      std::ranges::max_element(predictions, {}, &Prediction::images_per_s)->images_per_s();
  const Prediction* gentlest = nullptr;
  for (const Prediction& prediction : predictions) {
    if (prediction.images_per_s() < kAsFast * fastest) continue;
    const bool better =
        gentlest == nullptr || Gentleness(prediction) < Gentleness(*gentlest) ||
        (Gentleness(prediction) == Gentleness(*gentlest) && Faster(prediction, *gentlest));
    if (better) gentlest = &prediction;
  }
  return *gentlest;
}

}  // namespace ringtail
