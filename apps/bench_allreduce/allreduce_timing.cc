#include "apps/bench_allreduce/allreduce_timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/byte_text.h"
#include "core/check.h"
#include "core/units.h"

namespace ringtail {
namespace {

double RingShare(int ranks, Operation operation) {
  const double passes = operation == Operation::kAllreduce ? 2 : 1;
  return passes * (ranks - 1) / ranks;
}

// The smallest value that at least a `share` of all values do not exceed.
double Percentile(const std::vector<double>& sorted, double share) {
  const auto place = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(place, 1, sorted.size()) - 1];
}

}  // namespace

std::string_view OperationName(Operation operation) {
  return operation == Operation::kAllreduce ? "allreduce" : "allgather";
}

double AllreduceTiming::AlgbwGbPerS() const {
  return static_cast<double>(bytes) / (time_ms / kMsPerSecond) / kGiga;
}
double AllreduceTiming::BusbwGbPerS() const { return AlgbwGbPerS() * RingShare(world, operation); }

void SetPercentiles(std::span<const double> runs_ms, AllreduceTiming* timing) {
  RT_CHECK(!runs_ms.empty(), "at least one run was measured");
  std::vector<double> sorted(runs_ms.begin(), runs_ms.end());
  std::ranges::sort(sorted);
  timing->runs = static_cast<int64_t>(sorted.size());
  timing->time_ms = Percentile(sorted, 0.5);
  timing->p10_ms = Percentile(sorted, 0.1);
  timing->p90_ms = Percentile(sorted, 0.9);
  timing->p99_ms = Percentile(sorted, 0.99);
}

double IdealMilliseconds(const Topology& topology, const NetworkModel& network, int64_t bytes,
                         Operation operation) {
  const int hosts = topology.hosts();
  const double seconds_per_byte =
      hosts > 1 ? network.between_hosts.seconds_per_byte : network.within_host.seconds_per_byte;
  return RingShare(hosts > 1 ? hosts : topology.world(), operation) * static_cast<double>(bytes) *
         seconds_per_byte * kMsPerSecond;
}

nlohmann::ordered_json ToJson(const AllreduceTiming& timing) {
  return {{"operation", OperationName(timing.operation)},
          {"algorithm", timing.algorithm},
          {"chosen", timing.chosen},
          {"world", timing.world},
          {"bytes", timing.bytes},
          {"time_ms", timing.time_ms},
          {"p10_ms", timing.p10_ms},
          {"p90_ms", timing.p90_ms},
          {"p99_ms", timing.p99_ms},
          {"algbw_gb_per_s", timing.AlgbwGbPerS()},
          {"busbw_gb_per_s", timing.BusbwGbPerS()},
          {"cpu_s_per_gb", timing.cpu_s_per_gb},
          {"ideal_ms", timing.ideal_ms},
          {"runs", timing.runs}};
}

StatusOr<AllreduceTiming> TimingFromJson(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const nlohmann::ordered_json like = ToJson({});
  for (const auto& [key, value] : like.items()) {
    const bool fits = json.is_object() && json.contains(key) &&
                      (value.is_string() ? json[key].is_string() : json[key].is_number());
    if (!fits) return DataLoss(fmt::format("this is not a timing: \"{}\"", text));
  }
  const bool gathers = json["operation"] == OperationName(Operation::kAllgather);
  return AllreduceTiming{.operation = gathers ? Operation::kAllgather : Operation::kAllreduce,
                         .algorithm = json["algorithm"],
                         .chosen = json["chosen"],
                         .world = json["world"],
                         .bytes = json["bytes"],
                         .runs = json["runs"],
                         .time_ms = json["time_ms"],
                         .p10_ms = json["p10_ms"],
                         .p90_ms = json["p90_ms"],
                         .p99_ms = json["p99_ms"],
                         .cpu_s_per_gb = json["cpu_s_per_gb"],
                         .ideal_ms = json["ideal_ms"]};
}

std::string TimingsJson(std::span<const AllreduceTiming> timings) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (timings.size() == 1) json = ToJson(timings[0]);
  json["results"] = nlohmann::ordered_json::array();
  for (const AllreduceTiming& timing : timings) json["results"].push_back(ToJson(timing));
  return json.dump(2) + "\n";
}

std::string TimingHeader() {
  return fmt::format(
      "{:<26} {:>5} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8} {:>8} {:>6}\n",
      "algorithm", "ranks", "bytes", "time ms", "p10", "p90", "p99", "algbw GB/s", "busbw GB/s",
      "ideal ms", "of ideal", "CPU s/GB", "runs");
}

std::string TimingLine(const AllreduceTiming& timing) {
  const bool ideal_known = timing.ideal_ms > 0;
  const auto ms = [](double value) { return fmt::format("{:.{}f}", value, value < 10 ? 3 : 1); };
  return fmt::format(
      "{:<26} {:>5} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10.4f} {:>10.4f} {:>10} {:>8} {:>8.2f} "
      "{:>6}\n",
      timing.chosen == timing.algorithm ? timing.algorithm
                                        : fmt::format("{}: {}", timing.algorithm, timing.chosen),
      timing.world, FormatBytes(timing.bytes), ms(timing.time_ms), ms(timing.p10_ms),
      ms(timing.p90_ms), ms(timing.p99_ms), timing.AlgbwGbPerS(), timing.BusbwGbPerS(),
      ideal_known ? ms(timing.ideal_ms) : "-",
      ideal_known ? fmt::format("{:.2f}", timing.ideal_ms / timing.time_ms) : "-",
      timing.cpu_s_per_gb, timing.runs);
}

}  // namespace ringtail
