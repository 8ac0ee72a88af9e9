#include "apps/bench_allreduce/model_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/byte_text.h"
#include "core/units.h"

namespace ringtail {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

std::vector<CostRow> Rows(const ModelTableOptions& options) {
  std::vector<CostRow> rows =
      CostTable(options.worlds, options.bytes, options.links, options.ranks_per_host);
  std::erase_if(rows, [&](const CostRow& row) {
    return std::ranges::find(options.algorithms, row.algorithm) == options.algorithms.end();
  });
  return rows;
}

double GigabytesPerSecond(const LinkModel& links) { return 1 / links.seconds_per_byte / kGiga; }

// Relative to the whole array: 2 (N - 1) / N for a ring.
double SentShare(const CostRow& row) {
  return static_cast<double>(row.cost.sent_bytes) / static_cast<double>(row.bytes);
}

}  // namespace

std::string ModelTable(const ModelTableOptions& options) {
  std::string text = fmt::format(
      "Links of {:.4g} GB/s in both directions at once, {:.4g} us per message, adding for nothing; "
      "{} "
      "per host.\n"
      "rounds, sent: of the rank with the most. sent / bytes: how often it sends the whole array.\n"
      "busiest link: how long the busiest link is busy in one direction; nothing is faster.\n\n",
      GigabytesPerSecond(options.links), options.links.latency_s * kMicrosecondsPerSecond,
      options.ranks_per_host == 1 ? "one rank" : fmt::format("{} ranks", options.ranks_per_host));
  text +=
      fmt::format("{:<20} {:>5} {:>9} {:>7} {:>12} {:>12} {:>12} {:>16}\n", "algorithm", "ranks",
                  "bytes", "rounds", "sent MB", "sent / bytes", "time ms", "busiest link ms");
  for (const CostRow& row : Rows(options)) {
    text += fmt::format("{:<20} {:>5} {:>9} {:>7} {:>12.6g} {:>12.3f} {:>12.6g} {:>16.6g}\n",
                        row.algorithm, row.world, FormatBytes(row.bytes), row.cost.rounds,
                        static_cast<double>(row.cost.sent_bytes) / 1e6, SentShare(row),
                        row.cost.seconds * kMsPerSecond, row.busiest_link_seconds * kMsPerSecond);
  }
  return text;
}

std::string ModelJson(const ModelTableOptions& options) {
  nlohmann::ordered_json json = {
      {"latency_us", options.links.latency_s * kMicrosecondsPerSecond},
      {"link_gb_per_s", GigabytesPerSecond(options.links)},
      {"ranks_per_host", options.ranks_per_host},
      {"results", nlohmann::ordered_json::array()},
  };
  for (const CostRow& row : Rows(options)) {
    json["results"].push_back({
        {"algorithm", row.algorithm},
        {"world", row.world},
        {"bytes", row.bytes},
        {"rounds", row.cost.rounds},
        {"sent_bytes", row.cost.sent_bytes},
        {"received_bytes", row.cost.received_bytes},
        {"time_ms", row.cost.seconds * kMsPerSecond},
        {"busiest_link_ms", row.busiest_link_seconds * kMsPerSecond},
    });
  }
  return json.dump(2) + "\n";
}

}  // namespace ringtail
