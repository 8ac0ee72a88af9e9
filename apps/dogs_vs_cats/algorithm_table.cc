#include "apps/dogs_vs_cats/algorithm_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/print.h"
#include "core/units.h"

namespace ringtail {
namespace {

std::string Speeds(const AlgorithmTimings& timings, double forward_flops) {
  const double flops = forward_flops * (timings.direction == "backward" ? 2 : 1);  // two gradients
  std::vector<std::pair<double, std::string>> by_seconds;
  for (const auto& [name, seconds] : timings.seconds) {
    by_seconds.emplace_back(name == timings.chosen ? 0 : seconds, name);
  }
  std::ranges::sort(by_seconds);
  std::string line;
  for (const auto& [key, name] : by_seconds) {
    line += fmt::format("{}{} {:.0f}", line.empty() ? "" : ", ", name,
                        flops / timings.seconds.at(name) / kGiga);
  }
  return line;
}

}  // namespace

void PrintAlgorithmTable(std::span<const LayerInfo> layers) {
  const bool any = std::ranges::any_of(layers, [](const auto& l) { return !l.timings.empty(); });
  if (!any) return;
  Print("\n{:<32} {:<17} GFLOP/s as measured at set-up, the chosen algorithm first\n", "layer",
        "direction");
  for (const LayerInfo& layer : layers) {
    for (const AlgorithmTimings& timings : layer.timings) {
      Print("{:<32} {:<17} {}\n", layer.name, timings.direction,
            Speeds(timings, layer.forward_flops));
    }
  }
}

nlohmann::ordered_json AlgorithmJson(const LayerInfo& layer) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const AlgorithmTimings& timings : layer.timings) {
    nlohmann::ordered_json ms = nlohmann::ordered_json::object();
    for (const auto& [name, seconds] : timings.seconds) ms[name] = seconds * kMsPerSecond;
    json.push_back({{"direction", timings.direction}, {"chosen", timings.chosen}, {"ms", ms}});
  }
  return json;
}

}  // namespace ringtail
