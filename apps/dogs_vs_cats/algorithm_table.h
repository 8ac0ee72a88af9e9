// The measured speeds of the algorithms that each layer could use, as `time` prints them.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_ALGORITHM_TABLE_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_ALGORITHM_TABLE_H_

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "layers/net/net.h"

namespace ringtail {

// Prints one line per layer and direction with a choice of algorithms: GFLOP/s of a direct
// convolution, the chosen algorithm first. Prints nothing if no layer has a choice.
void PrintAlgorithmTable(std::span<const LayerInfo> layers);

// [{"direction": "forward", "chosen": "winograd 4x4", "ms": {"winograd 4x4": 4.0, ...}}, ...]
nlohmann::ordered_json AlgorithmJson(const LayerInfo& layer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_ALGORITHM_TABLE_H_
