#include "tests/apps/emulator/tiny_emulation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/stop_signal.h"
#include "tests/apps/tiny_run.h"

namespace ringtail {
namespace {

constexpr int kGlobalBatch = 8;

}  // namespace

EmulationScript TinyScript(const std::string& text) {
  return ParseScript(text, "tiny.script").value();
}

StatusOr<EmulationResult> EmulateTiny(const std::string& text,
                                      const std::vector<std::string>& overrides,
                                      const std::string& network) {
  SetStopSignalForTest(0);
  const EmulationScript script = TinyScript(text);
  std::vector<std::string> all = {fmt::format("train.batch={}", kGlobalBatch / script.workers())};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const LoadedConfig loaded = TinyConfig(all);
  TrainingWorld alone;
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded.config.data(), &alone));
  RT_ASSIGN_OR_RETURN(Emulation emulation, Emulation::Create(&loaded, &data, script));
  RT_RETURN_IF_ERROR(emulation.Run());
  if (!network.empty()) RT_RETURN_IF_ERROR(emulation.WriteNetwork(network));
  return emulation.Result();
}

std::vector<nlohmann::json> LinesOf(const EmulationResult& result, const std::string& kind) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(result.lines);
  for (std::string line; std::getline(text, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    if (json["kind"] == kind) lines.push_back(std::move(json));
  }
  return lines;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return difference / largest;
}

std::vector<float> TrainedWeights(const std::vector<std::string>& overrides) {
  SetStopSignalForTest(0);
  const LoadedConfig loaded = TinyConfig(overrides);
  TrainingWorld alone;
  const TrainingData data = TrainingData::Open(loaded.config.data(), &alone).value();
  TrainingRun run = TrainingRun::Create({.loaded = &loaded, .data = &data}).value();
  auto trainer = Trainer::Create(&run, {}, &alone).value();
  RT_CHECK(TrainToEnd(&trainer).ok(), "the tiny run must end");
  const std::span<const float> weights = run.state.model()->arena().values();
  return {weights.begin(), weights.end()};
}

}  // namespace ringtail
