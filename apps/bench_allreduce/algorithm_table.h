// How fast every algorithm was that a layer could have used: what `time` says of it.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_BENCH_ALLREDUCE_ALGORITHM_TABLE_H_
#define RINGTAIL_APPS_BENCH_ALLREDUCE_ALGORITHM_TABLE_H_

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "layers/net/net.h"

namespace ringtail {

// One line per layer and direction that had a choice: GFLOP/s of direct convolution, the chosen
// algorithm first. Prints nothing if no layer had one.
void PrintAlgorithmTable(std::span<const LayerInfo> layers);

// [{"direction": "forward", "chosen": "winograd 4x4", "ms": {"winograd 4x4": 4.0, ...}}, ...]
nlohmann::ordered_json AlgorithmJson(const LayerInfo& layer);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_ALLREDUCE_ALGORITHM_TABLE_H_
