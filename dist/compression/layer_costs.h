// What it costs to send a layer's gradient: as it is, or coded in one of three ways; and which is the
// cheapest. Encoding that takes longer than the bytes it saves would take is not worth it: then the
// layer is sent as it is.
//
//             a rank receives            and computes
//   dense     2 (N - 1) / N bytes        nothing
//   gathered  (N - 1) payload            encode + N decode
//   sharded   2 (N - 1) / N payload      (1 + 1 / N) encode + 2 decode
//   sketched  2 (N - 1) / N sketch       encode + decode
//
// What it receives takes beta seconds per byte, those of the slowest link of the world. Latencies are
// left out: they are those of a bucket, whatever is in it. (payload_exchange.h; ring allreduce and
// allgather.)
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_LAYER_COSTS_H_
#define RINGTAIL_DIST_COMPRESSION_LAYER_COSTS_H_

#include <cstdint>
#include <string>

#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"
#include "dist/compression/gradient_shape.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

enum class LayerWay { kDense, kGathered, kSharded, kSketched };

// What each rank receives in a step, once warm-up is over. The scheme must allow the way.
int64_t ReceivedBytes(LayerWay way, const LayerScheme& scheme, const GradientShape& shape,
                      int world);

// Once warm-up is over.
struct LayerCoding {
  double encode_seconds = 0;  // memory included
  double decode_seconds = 0;  // of one payload
};

struct LayerCosts {
  double dense = 0, gathered = 0, sharded = 0, sketched = 0;  // seconds; infinity: does not apply
};

// Encodes and decodes normally distributed numbers, a few times. Takes milliseconds per megabyte.
LayerCoding MeasureCoding(const LayerScheme& scheme, const GradientShape& shape);

LayerCosts CostsOf(const LayerScheme& scheme, const GradientShape& shape, const LayerCoding& coding,
                   int world, double seconds_per_byte);
LayerWay Cheapest(const LayerCosts& costs);
// Where dense is not wanted, however cheap.
LayerWay CheapestCoded(const LayerCosts& costs);

// Of the slowest link.
double SecondsPerByte(const NetworkModel& network, const Topology& topology);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_LAYER_COSTS_H_
