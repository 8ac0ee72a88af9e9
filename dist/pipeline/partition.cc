#include "dist/pipeline/partition.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/check.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "dist/pipeline/stage_units.h"

namespace ringtail {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();
// Times that differ by less are equal: sums of the same numbers in another order.
constexpr double kRounding = 1e-9;
// After so much work a search ends unproven: half a second, as pricing takes some 50 ns per S S M
// (one core of an Intel Xeon).
constexpr int64_t kMostPricing = 10'000'000, kMostBranches = 20'000'000;

// One of the two searches: every way to cut, but for branches that cannot lead to a better one.
class CutSearch {
 public:
  // From `best` on, which must be possible.
  CutSearch(const PartitionProblem& problem, const StageUnits& units, PipelinePartition best)
      : problem_(problem),
        units_(units),
        best_(std::move(best)),
        best_bytes_(BytesOf(best_.last_layers)),
        least_compute_(units.LeastMaximum([&](int stage, int first, int last) {
          return units.Fits(stage, first, last) ? units.ComputeSeconds(first, last) : kImpossible;
        })) {}

  // The shortest step.
  PipelinePartition Shortest() { return Run(); }

  // The fewest bytes whose step takes at most `limit` seconds.
  PipelinePartition FewestBytes(double limit) {
    limit_s_ = limit;
    least_bytes_ = units_.LeastOf(
        [&](int stage, int first, int last) {
          const bool possible = units_.Fits(stage, first, last) &&
                                MicroBatches() * units_.ComputeSeconds(first, last) <= limit;
          const bool is_last = stage + 1 == units_.stages();
          if (!possible) return kImpossible;
          return is_last ? 0.0 : static_cast<double>(units_.CrossingBytes(last));
        },
        [](double own, double rest) { return own + rest; });
    return Run();
  }

 private:
  // Of the stages that are set.
  struct Prefix {
    double trip_s = 0;   // one micro-batch through them, forward and backward, and its messages
    double bound_s = 0;  // a step takes at least so long
    int64_t bytes = 0;   // of one micro-batch between stages
  };

  PipelinePartition Run() {
    const bool was_proven = best_.is_proven;
    Branch(0, 0, {});
    best_.is_proven = was_proven && !ended_;
    return std::move(best_);
  }

  double MicroBatches() const { return problem_.shape.micro_batches; }

  int64_t BytesOf(const std::vector<int>& last_layers) const {
    int64_t bytes = 0;
    for (size_t s = 0; s + 1 < last_layers.size(); ++s) {
      const BoundaryCost& crossing = problem_.layers[last_layers[s]].crossing;
      bytes += crossing.activation_bytes + crossing.gradient_bytes;
    }
    return bytes;
  }

  // Sets stage `stage`, which begins with unit `first`, in all ways, latest cuts first.
  void Branch(int stage, int first, const Prefix& prefix) {
    const bool is_last = stage + 1 == units_.stages();
    const int earliest = is_last ? units_.size() - 1 : first;
    for (int last = units_.LatestLast(stage); last >= earliest && !ended_; --last) {
      if (++branches_ > kMostBranches) ended_ = true;
      if (!units_.Fits(stage, first, last)) continue;
      const Prefix longer = Extend(prefix, first, last);
      if (!IsWorthwhile(longer, stage, last)) continue;
      last_units_.push_back(last);
      is_last ? Price(longer) : Branch(stage + 1, last + 1, longer);
      last_units_.pop_back();
    }
  }

  Prefix Extend(Prefix prefix, int first, int last) const {
    const double compute = units_.ComputeSeconds(first, last);
    prefix.bound_s = std::max({prefix.bound_s, prefix.trip_s + MicroBatches() * compute,
                               MicroBatches() * units_.PortSeconds(first, last)});
    prefix.trip_s += compute;
    if (last + 1 < units_.size()) {
      prefix.trip_s += units_.RoundTripSeconds(last);
      prefix.bytes += units_.CrossingBytes(last);
    }
    return prefix;
  }

  bool IsWorthwhile(const Prefix& prefix, int stage, int last) const {
    const bool is_last = stage + 1 == units_.stages();
    double bound = prefix.bound_s;
    if (!is_last) {
      bound = std::max(bound, prefix.trip_s + MicroBatches() * least_compute_[stage + 1][last + 1]);
    }
    if (least_bytes_.empty()) return bound < best_.price.step_s * (1 - kRounding);
    const double bytes =
        static_cast<double>(prefix.bytes) + (is_last ? 0 : least_bytes_[stage + 1][last + 1]);
    const auto best_bytes = static_cast<double>(best_bytes_);
    return bound <= limit_s_ &&
           (bytes < best_bytes ||
            (bytes == best_bytes && bound < best_.price.step_s * (1 - kRounding)));
  }

  void Price(const Prefix& prefix) {
    const PipelineShape& shape = problem_.shape;
    priced_ += int64_t{shape.stages} * shape.stages * shape.micro_batches;
    if (priced_ > kMostPricing) {
      ended_ = true;
      return;
    }
    PipelinePartition candidate = units_.Price(last_units_);
    const double seconds = candidate.price.step_s;
    const bool is_faster = seconds < best_.price.step_s * (1 - kRounding);
    const bool is_better =
        least_bytes_.empty() ? is_faster
                             : seconds <= limit_s_ && (prefix.bytes < best_bytes_ ||
                                                       (prefix.bytes == best_bytes_ && is_faster));
    if (!is_better) return;
    best_ = std::move(candidate);
    best_bytes_ = prefix.bytes;
  }

  const PartitionProblem& problem_;
  const StageUnits& units_;
  PipelinePartition best_;
  int64_t best_bytes_ = 0;
  double limit_s_ = kImpossible;
  const StageUnits::Table least_compute_;
  StageUnits::Table least_bytes_;  // empty: the shortest step is searched
  std::vector<int> last_units_;    // of the stages that are set
  int64_t branches_ = 0, priced_ = 0;
  bool ended_ = false;  // before it had seen everything
};

std::string Mib(int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kBytesPerMib);
}

// "after a, b and c"
std::string PlacesToCut(const PartitionProblem& problem, const StageUnits& units) {
  std::string places;
  for (int u = 0; u + 1 < units.size(); ++u) {
    places += (u == 0                  ? "after "
               : u + 2 == units.size() ? " and "
                                       : ", ") +
              problem.layers[units.LastLayer(u)].name;
  }
  return places.empty() ? "nowhere" : places;
}

// The unit that fits on no stage on which it can lie, if there is one.
Status CheckUnitsFit(const PartitionProblem& problem, const StageUnits& units) {
  for (int u = 0; u < units.size(); ++u) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int s = 0; s < units.stages(); ++s) {
      const bool has_rest = u >= s && u <= units.LatestLast(s);
      if (has_rest) least = std::min(least, units.MemoryBytes(s, u, u));
    }
    if (least <= problem.memory_limit_bytes) continue;
    const std::string& first = problem.layers[units.FirstLayer(u)].name;
    const std::string& last = problem.layers[units.LastLayer(u)].name;
    const std::string what =
        first == last
            ? fmt::format("layer '{}' alone needs", first)
            : fmt::format("layers '{}' to '{}', which cannot be parted, need", first, last);
    return ResourceExhausted(fmt::format(
        "{} {}, more than the limit of {} of a stage, however the network is cut; use smaller "
        "micro-batches or a higher limit",
        what, Mib(least), Mib(problem.memory_limit_bytes)));
  }
  return OkStatus();
}

Status CheckMemory(const PartitionProblem& problem, const StageUnits& units) {
  if (problem.memory_limit_bytes == 0) return OkStatus();
  RT_RETURN_IF_ERROR(CheckUnitsFit(problem, units));
  const double least = units.LeastMaximum([&](int stage, int first, int last) {
    return static_cast<double>(units.MemoryBytes(stage, first, last));
  })[0][0];
  if (least <= static_cast<double>(problem.memory_limit_bytes)) return OkStatus();
  return ResourceExhausted(
      fmt::format("no cut into {} keeps to the limit of {} of a stage; the largest stage needs {} "
                  "at least: use more stages, smaller micro-batches or a higher limit",
                  Counted(problem.shape.stages, "stage"), Mib(problem.memory_limit_bytes),
                  Mib(static_cast<int64_t>(least))));
}

Status CheckProblem(const PartitionProblem& problem, const StageUnits& units) {
  const PipelineShape& shape = problem.shape;
  if (units.size() < shape.stages) {
    return InvalidArgument(
        fmt::format("{} need {}, but the network can be cut {} only: {}",
                    Counted(shape.stages, "stage"), Counted(shape.stages - 1, "cut"),
                    Counted(units.size() - 1, "time"), PlacesToCut(problem, units)));
  }
  return CheckMemory(problem, units);
}

// The best balanced of the possible cuts, with messages or without, whichever is faster.
PipelinePartition FirstCandidate(const StageUnits& units) {
  std::optional<PipelinePartition> best;
  for (const bool with_messages : {false, true}) {
    const auto value = [&](int stage, int first, int last) {
      if (!units.Fits(stage, first, last)) return kImpossible;
      const double compute = units.ComputeSeconds(first, last);
      return with_messages ? std::max(compute, units.PortSeconds(first, last)) : compute;
    };
    const std::vector<int> cuts = units.CutsOf(units.LeastMaximum(value), value);
    PipelinePartition candidate = units.Price(cuts);
    if (!best || candidate.price.step_s < best->price.step_s) best = std::move(candidate);
  }
  return *std::move(best);
}

}  // namespace

PipelinePartition PriceOfCuts(const PartitionProblem& problem, std::span<const int> last_layers) {
  const StageUnits units(problem);
  std::vector<int> last_units;
  for (int u = 0; u < units.size() && last_units.size() < last_layers.size(); ++u) {
    if (units.LastLayer(u) == last_layers[last_units.size()]) last_units.push_back(u);
  }
  RT_CHECK(static_cast<int>(last_layers.size()) == problem.shape.stages &&
               last_units.size() == last_layers.size() && last_units.back() + 1 == units.size(),
           "a stage ends where the network may be cut, and the last one with its last layer");
  return units.Price(last_units);
}

StatusOr<PipelinePartition> PartitionLayers(const PartitionProblem& problem) {
  const PipelineShape& shape = problem.shape;
  if (shape.stages < 1 || shape.micro_batches < 1) {
    return InvalidArgument(
        fmt::format("{} stages and {} micro-batches: there must be at least one "
                    "of each",
                    shape.stages, shape.micro_batches));
  }
  const StageUnits units(problem);
  RT_RETURN_IF_ERROR(CheckProblem(problem, units));
  PipelinePartition shortest = CutSearch(problem, units, FirstCandidate(units)).Shortest();
  const double limit = shortest.price.step_s * (1 + problem.fewer_bytes_within + kRounding);
  return CutSearch(problem, units, std::move(shortest)).FewestBytes(limit);
}

}  // namespace ringtail
