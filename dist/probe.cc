#include "dist/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/machine/processor_time.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/collectives/element_type.h"
#include "dist/collectives/rank_group.h"
#include "dist/collectives/schedule.h"
#include "dist/communicator.h"

namespace ringtail {
namespace {

constexpr int kWarmups = 1, kRepetitions = 4;
constexpr int kLatencyRounds = 8;
constexpr int64_t kShortBytes = 256 << 10, kLongBytes = 1280 << 10;
constexpr size_t kAddedBytes = 512 << 10;
// The plans of the probe are counted apart from what its communicator does.
constexpr uint64_t kFirstPlan = uint64_t{1} << 40;

// What is repeated: the members of `group` pass `pieces` pieces of `bytes` around, `rounds` times.
struct Measurement {
  const RankGroup& group;
  int64_t bytes = 0;
  int pieces = 2;
  int rounds = 1;

  int64_t piece_elements() const { return bytes / kElementBytes; }
  int64_t elements() const { return pieces * piece_elements(); }
};

// Member i sends piece i to member i + 1, then the one that it has received from member i - 1, and
// so on; all count modulo the pieces. No rounds for ranks outside the group.
Plan PassAround(const Measurement& what, int rank) {
  Plan plan;
  const int members = what.group.size();
  const std::optional<int> self = what.group.MemberOf(rank);
  if (!self || members < 2) return plan;
  const int next = (*self + 1) % members, previous = (*self + members - 1) % members;
  const auto piece_of = [&](int member, int round) -> ElementRange {
    const int piece = (member + what.rounds * what.pieces - round) % what.pieces;
    return {piece * what.piece_elements(), what.piece_elements()};
  };
  for (int round = 0; round < what.rounds; ++round) {
    plan.AddRound({Step::Send(next, piece_of(*self, round)),
                   Step::ReceiveCopy(previous, piece_of(previous, round))});
  }
  return WithPeers(std::move(plan), what.group.ranks());
}

// What a repetition costs.
struct Measured {
  double seconds = 0;      // of the slowest rank in the shortest one
  double cpu_seconds = 0;  // of a rank of the group, mean over ranks and repetitions
};

struct MeasuredLink {
  LinkModel link;
  double cpu_seconds_per_byte = 0, cpu_seconds_per_message = 0;
};

// So few pieces that memory is small in any group, and no member receives the piece that it sends.
int PiecesForOneRound(const RankGroup& group) {
  int pieces = 2;
  while (group.size() > 1 && (group.size() - 1) % pieces == 0) ++pieces;
  return pieces;
}

class Probe {
 public:
  Probe(Transport* transport, const Topology& topology, std::unique_ptr<Communicator> ranks,
        const ExecutorOptions& options)
      : topology_(topology), ranks_(std::move(ranks)), executor_(transport, options) {}

  StatusOr<NetworkModel> Run();

 private:
  // Latency and seconds per byte of the links between the ranks of `group`, at the same time on
  // every host's group.
  StatusOr<MeasuredLink> MeasureLinks(const RankGroup& group);
  // The same on all ranks.
  StatusOr<Measured> Measure(const Measurement& what);
  StatusOr<double> MeasureAdding();
  StatusOr<std::vector<double>> OfAllRanks(std::span<const double> own);

  const Topology& topology_;
  const std::unique_ptr<Communicator> ranks_;
  Executor executor_;
  uint64_t next_plan_ = kProbeChannel.FirstCollective() + kFirstPlan;
};

// own.size() numbers of rank 0, as many of rank 1, ...
StatusOr<std::vector<double>> Probe::OfAllRanks(std::span<const double> own) {
  std::vector<double> all(own.size() * ranks_->world_size());
  std::ranges::copy(own, all.begin() + static_cast<int64_t>(own.size()) * ranks_->rank());
  RT_RETURN_IF_ERROR(ranks_->AllGather(std::span(all)));
  return all;
}

StatusOr<Measured> Probe::Measure(const Measurement& what) {
  std::vector<float> array(what.elements());
  const Schedule schedule(PassAround(what, ranks_->rank()), ranks_->rank(),
                          {.name = "probe", .count = what.elements()});
  const bool takes_part = !schedule.operations().empty();
  std::array<double, kRepetitions + 2> own{};  // seconds; processor seconds; whether it takes part
  for (int i = -kWarmups; i < kRepetitions; ++i) {
    RT_RETURN_IF_ERROR(ranks_->Barrier());
    const double cpu_before = ProcessSeconds();
    const Stopwatch stopwatch;
    RT_RETURN_IF_ERROR(executor_.Run(schedule, next_plan_++, std::span(array)));
    if (i < 0 || !takes_part) continue;
    own[i] = stopwatch.Seconds();
    own[kRepetitions] += (ProcessSeconds() - cpu_before) / kRepetitions;
    own[kRepetitions + 1] = 1;
  }
  RT_ASSIGN_OR_RETURN(const std::vector<double> all, OfAllRanks(own));
  Measured measured{.seconds = std::numeric_limits<double>::infinity()};
  std::array<double, own.size()> slowest{}, sum{};
  for (size_t k = 0; k < all.size(); ++k) {
    slowest[k % own.size()] = std::max(slowest[k % own.size()], all[k]);
    sum[k % own.size()] += all[k];
  }
  measured.seconds = *std::min_element(slowest.begin(), slowest.begin() + kRepetitions);
  measured.cpu_seconds = sum[kRepetitions] / std::max(1.0, sum[kRepetitions + 1]);
  return measured;
}

StatusOr<MeasuredLink> Probe::MeasureLinks(const RankGroup& group) {
  // As many pieces as members: each round sends what the previous one has brought.
  const int members = group.size();
  const int pieces = PiecesForOneRound(group);
  RT_ASSIGN_OR_RETURN(
      const Measured chain,
      Measure(
          {.group = group, .bytes = kElementBytes, .pieces = members, .rounds = kLatencyRounds}));
  RT_ASSIGN_OR_RETURN(const Measured few,
                      Measure({.group = group, .bytes = kShortBytes, .pieces = pieces}));
  RT_ASSIGN_OR_RETURN(const Measured many,
                      Measure({.group = group, .bytes = kLongBytes, .pieces = pieces}));
  // Noise can make the shorter message the slower one; then what does not depend on bytes is left in.
  const auto per_byte = [](double few_seconds, double many_seconds) {
    return many_seconds > few_seconds
               ? (many_seconds - few_seconds) / static_cast<double>(kLongBytes - kShortBytes)
               : many_seconds / static_cast<double>(kLongBytes);
  };
  return MeasuredLink{.link = {.latency_s = chain.seconds / kLatencyRounds,
                               .seconds_per_byte = per_byte(few.seconds, many.seconds)},
                      .cpu_seconds_per_byte = per_byte(few.cpu_seconds, many.cpu_seconds),
                      .cpu_seconds_per_message = chain.cpu_seconds / kLatencyRounds};
}

StatusOr<double> Probe::MeasureAdding() {
  const AlignedBuffer sum(kAddedBytes), addend(kAddedBytes);
  std::ranges::fill(std::span(sum.data(), kAddedBytes), std::byte{0});
  std::ranges::fill(std::span(addend.data(), kAddedBytes), std::byte{0});
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kWarmups + kRepetitions; ++i) {
    const Stopwatch stopwatch;
    AddFunctionOf(ElementType::kFloat)(sum.data(), addend.data(), kAddedBytes);
    shortest = std::min(shortest, stopwatch.Seconds());
  }
  RT_ASSIGN_OR_RETURN(const std::vector<double> all, OfAllRanks({&shortest, 1}));
  return std::ranges::max(all) / kAddedBytes;
}

StatusOr<NetworkModel> Probe::Run() {
  std::vector<int> leaders;
  bool pairs = false;  // on any host
  for (int host = 0; host < topology_.hosts(); ++host) {
    const std::vector<int> ranks = topology_.RanksOf(host);
    leaders.push_back(ranks.front());
    pairs = pairs || ranks.size() > 1;
  }
  NetworkModel network;
  if (pairs) {
    const RankGroup own(topology_.RanksOf(topology_.host_of_rank[ranks_->rank()]));
    RT_ASSIGN_OR_RETURN(const MeasuredLink within, MeasureLinks(own));
    network = {.within_host = within.link,
               .between_hosts = within.link,
               .cpu_seconds_per_byte = within.cpu_seconds_per_byte,
               .cpu_seconds_per_message = within.cpu_seconds_per_message};
  }
  if (leaders.size() > 1) {
    RT_ASSIGN_OR_RETURN(const MeasuredLink between, MeasureLinks(RankGroup(leaders)));
    network.between_hosts = between.link;
    network.cpu_seconds_per_byte = between.cpu_seconds_per_byte;
    network.cpu_seconds_per_message = between.cpu_seconds_per_message;
    if (!pairs) network.within_host = network.between_hosts;
  }
  RT_ASSIGN_OR_RETURN(const double adding, MeasureAdding());
  network.within_host.reduce_seconds_per_byte = adding;
  network.between_hosts.reduce_seconds_per_byte = adding;
  return network;
}

}  // namespace

StatusOr<NetworkModel> ProbeNetwork(Transport* transport, const Topology& topology,
                                    const ExecutorOptions& executor) {
  RT_ASSIGN_OR_RETURN(auto ranks, Communicator::Create(transport, topology,
                                                       {.algorithm = "recursive_doubling",
                                                        .executor = executor,
                                                        .channel = kProbeChannel}));
  auto network = Probe(transport, topology, std::move(ranks), executor).Run();
  if (!network.ok()) return network.status().Annotate("measuring the network");
  return network;
}

std::string DescribeLink(const LinkModel& link) {
  const auto speed = [](double seconds_per_byte) {
    if (seconds_per_byte <= 0) return std::string("infinitely many GB/s");
    return fmt::format("{:.2g} GB/s", 1 / seconds_per_byte / kGiga);
  };
  return fmt::format("latency {:.3g} us, {} each way, adding {}", link.latency_s / kMicro,
                     speed(link.seconds_per_byte), speed(link.reduce_seconds_per_byte));
}

}  // namespace ringtail
