#include "dist/collectives/selector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/text/counted.h"

namespace ringtail {
namespace {

constexpr double kExactness = 0.03;  // of a probed network

// Of the rank that sends to the most others.
size_t MostPeers(const std::vector<Plan>& plans) {
  size_t most = 0;
  for (const Plan& plan : plans) {
    std::set<int> peers;
    for (const Round& round : plan.rounds) {
      for (const Step& step : round.steps) {
        if (step.kind == StepKind::kSend) peers.insert(step.peer);
      }
    }
    most = std::max(most, peers.size());
  }
  return most;
}

struct Priced {
  double seconds = 0;
  size_t peers = 0;
  const AllreduceAlgorithm* algorithm = nullptr;
};

// Three digits: "1.2 GB", "25 MB", "512 B".
std::string WithPrefix(double value, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "k", "M", "G", "T"};
  size_t i = 0;
  for (; std::fabs(value) >= 999.5 && i + 1 < std::size(kPrefixes); ++i) value /= 1000;
  return fmt::format("{:.3g} {}{}", value, kPrefixes[i], unit);
}

std::string Duration(double seconds) {  // "320 ms", "4.5 s", "85 us"
  if (seconds >= 0.9995) return fmt::format("{:.3g} s", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

std::string Bandwidth(const LinkModel& link) {
  if (link.seconds_per_byte <= 0) return "unlimited bandwidth";
  return WithPrefix(1 / link.seconds_per_byte, "B/s");
}

Status CheckLink(const LinkModel& link, std::string_view which) {
  for (const double value : {link.latency_s, link.seconds_per_byte, link.reduce_seconds_per_byte}) {
    if (!std::isfinite(value) || value < 0) {
      return InvalidArgument(
          fmt::format("the measured network {} has {} s as latency, {} s per byte and {} s per "
                      "byte to add: none may be negative or not a number",
                      which, link.latency_s, link.seconds_per_byte, link.reduce_seconds_per_byte));
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<AlgorithmSelector> AlgorithmSelector::Create(std::string_view setting, Topology topology,
                                                      const NetworkModel& network) {
  RT_CHECK(topology.world() > 0, "the topology has no ranks");
  std::vector<SizeTableEntry> table;
  if (setting == "auto") {
    RT_RETURN_IF_ERROR(CheckLink(network.within_host, "within a host"));
    RT_RETURN_IF_ERROR(CheckLink(network.between_hosts, "between hosts"));
  } else if (setting.find(':') != std::string_view::npos) {
    RT_ASSIGN_OR_RETURN(table, ParseSizeTable(setting));
  } else {
    const auto found = FindAllreduce(setting);
    if (!found.ok()) {
      return InvalidArgument(found.status().message() +
                             "; or 'auto', or a table by bytes such as "
                             "'recursive_doubling:0-65536;ring:65536-'");
    }
    table.push_back({.algorithm = *found,
                     .to_bytes = std::numeric_limits<int64_t>::max(),
                     .text = std::string(setting)});
  }
  return AlgorithmSelector(std::move(table), std::move(topology), network);
}

AlgorithmSelector::AlgorithmSelector(std::vector<SizeTableEntry> table, Topology topology,
                                     const NetworkModel& network)
    : table_(std::move(table)), topology_(std::move(topology)), network_(network) {}

const AllreduceChoice& AlgorithmSelector::Select(int64_t bytes) {
  RT_CHECK(bytes >= 0, "an array cannot have a negative size");
  const auto known = choices_.find(bytes);
  if (known != choices_.end()) return known->second;
  return choices_[bytes] = table_.empty() ? Cheapest(bytes) : FromTable(bytes);
}

std::map<int64_t, std::string> AlgorithmSelector::Selected() const {
  std::map<int64_t, std::string> selected;
  if (!table_.empty()) return selected;
  for (const auto& [bytes, choice] : choices_) selected.emplace(bytes, choice.algorithm->name);
  return selected;
}

StatusOr<std::set<std::string>> AlgorithmSelector::Keep(
    const std::map<int64_t, std::string>& selected) {
  std::set<std::string> unsuited;
  if (!table_.empty()) return unsuited;
  for (const auto& [bytes, name] : selected) {
    const auto algorithm = FindAllreduce(name);
    if (!algorithm.ok()) {
      return DataLoss(fmt::format("'{}' was used for an allreduce of {} bytes, but {}", name, bytes,
                                  algorithm.status().message()));
    }
    if (!(*algorithm)->Suits(topology_)) {
      unsuited.insert(name);
      continue;
    }
    choices_[bytes] = {.algorithm = *algorithm,
                       .why = fmt::format("{}: as when the run began", name)};
  }
  return unsuited;
}

AllreduceChoice AlgorithmSelector::FromTable(int64_t bytes) const {
  const auto after =
      std::upper_bound(table_.begin(), table_.end(), bytes,
                       [](int64_t n, const SizeTableEntry& entry) { return n < entry.from_bytes; });
  const SizeTableEntry& entry = *std::prev(after);
  return {.algorithm = entry.algorithm,
          .why = fmt::format("{}: {}, as '{}' asks for", entry.algorithm->name,
                             WithPrefix(static_cast<double>(bytes), "B"), entry.text)};
}

AllreduceChoice AlgorithmSelector::Cheapest(int64_t bytes) const {
  std::vector<Priced> priced;
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    if (algorithm.auto_use == AutoUse::kNever || !algorithm.Suits(topology_)) continue;
    const int64_t count = (bytes + kElementBytes - 1) / kElementBytes;
    const std::vector<Plan> plans = AllPlans(algorithm, topology_, count);
    priced.push_back({.seconds = CostOfPlans(plans, topology_, network_).seconds,
                      .peers = MostPeers(plans),
                      .algorithm = &algorithm});
  }
  // Among equals the first in the table of algorithms, on every rank.
  std::ranges::stable_sort(priced, {}, &Priced::seconds);
  if (topology_.hosts() > 1) {
    const double as_cheap = priced.front().seconds * (1 + kExactness);
    const auto dearer =
        std::ranges::find_if(priced, [&](const Priced& each) { return each.seconds > as_cheap; });
    std::stable_sort(priced.begin(), dearer,
                     [](const Priced& a, const Priced& b) { return a.peers < b.peers; });
  }
  const Priced &best = priced[0], &second = priced[1];
  return {
      .algorithm = best.algorithm,
      .why = fmt::format("{}: {} over {}, {}; {} {}", best.algorithm->name,
                         WithPrefix(static_cast<double>(bytes), "B"), DescribeNetwork(),
                         Duration(best.seconds), second.algorithm->name, Duration(second.seconds))};
}

std::string AlgorithmSelector::DescribeNetwork() const {
  const std::string ranks = Counted(topology_.world(), "rank");
  const std::string wire = Bandwidth(network_.between_hosts);
  if (topology_.hosts() == 1) {
    return fmt::format("{} at {}", ranks, Bandwidth(network_.within_host));
  }
  if (!topology_.has_levels()) return fmt::format("{} at {}", ranks, wire);
  return fmt::format("{} on {} hosts at {}", ranks, topology_.hosts(), wire);
}

}  // namespace ringtail
