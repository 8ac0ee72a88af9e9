// Emulations of the tiny run (tests/apps/tiny_run.h): 40 images train, batches are divided among
// the virtual workers.
#ifndef RINGTAIL_TESTS_APPS_EMULATOR_TINY_EMULATION_H_
#define RINGTAIL_TESTS_APPS_EMULATOR_TINY_EMULATION_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/emulator/emulation.h"
#include "core/status.h"

namespace ringtail {

using Overrides = std::vector<std::string>;

// Parts of scripts: workers of one speed; a network that costs nothing.
inline const std::string kFixed = "compute { fixed_ms: 4 ms_per_image: 1 update_ms: 2 } ";
inline const std::string kFreeWire =
    "between_hosts { mbit_per_s: 1e9 latency_us: 0 } within_host { latency_us: 0 } ";

// Adapts the config of the tiny run to `workers` workers: a global batch of 8 images.
// `network`: Emulation::WriteNetwork; empty: nowhere.
StatusOr<EmulationResult> EmulateTiny(const std::string& script, const Overrides& overrides = {},
                                      const std::string& network = "");
EmulationScript TinyScript(const std::string& text);

// The lines of a kind.
std::vector<nlohmann::json> LinesOf(const EmulationResult& result, const std::string& kind);
// The largest difference between two weights, over the largest weight.
double LargestDifference(const std::vector<float>& a, const std::vector<float>& b);
// The weights of a real run of one process, in the arena's layout.
std::vector<float> TrainedWeights(const Overrides& overrides);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_EMULATOR_TINY_EMULATION_H_
