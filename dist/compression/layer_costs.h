// What it costs to send the gradient of a layer by each route (layer_routes.h), and which is the
// cheapest. Encoding that takes longer than the bytes that it saves is not worth it: then the layer
// is sent uncompressed.
//
//             a rank receives            and computes
//   dense     2 (N - 1) / N bytes        nothing
//   gathered  (N - 1) payload            encode + N decode
//   sharded   2 (N - 1) / N payload      (1 + 1 / N) encode + 2 decode    (a sum's payload may be longer)
//   sketched  2 (N - 1) / N sketch       encode + decode
//
// all of it less often where a layer waits for several steps (LayerScheme::every_steps).
// Receiving takes beta seconds per byte, those of the slowest link of the world. Latencies are left
// out: they belong to a bucket, whatever is in it. (payload_exchange.h; ring allreduce and
// allgather.)
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_LAYER_COSTS_H_
#define RINGTAIL_DIST_COMPRESSION_LAYER_COSTS_H_

#include <cstdint>

#include "dist/collectives/plan_cost.h"
#include "dist/collectives/topology.h"
#include "dist/compression/compression.pb.h"
#include "dist/compression/gradient_shape.h"
#include "dist/compression/layer_routes.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

// Bytes that each rank receives in a step, once warm-up is over; a mean, where a layer is not sent in
// every step. The scheme must allow the route.
int64_t ReceivedBytes(LayerRoute route, const LayerScheme& scheme, const GradientShape& shape,
                      int world);

// Once warm-up is over.
struct LayerCoding {
  double encode_seconds = 0;  // including the memory
  double decode_seconds = 0;  // per payload
};

struct LayerCosts {
  double dense = 0, gathered = 0, sharded = 0, sketched = 0;  // seconds; infinity: not possible
};

// Encodes and decodes normally distributed numbers, a few times. Takes milliseconds per megabyte.
LayerCoding MeasureCoding(const LayerScheme& scheme, const GradientShape& shape);

LayerCosts CostsOf(const LayerScheme& scheme, const GradientShape& shape, const LayerCoding& coding,
                   int world, double seconds_per_byte);
LayerRoute Cheapest(const LayerCosts& costs);
// Without the dense route, however cheap; kDense if the scheme codes nothing.
LayerRoute CheapestCoded(const LayerCosts& costs);

// The route that a run takes: dense where that is cheapest and config.fall_back allows it, else what
// config.route says, if the scheme allows that.
LayerRoute ChooseRoute(const CompressionConfig& config, const LayerScheme& scheme,
                       const LayerCosts& costs);

// Of the slowest link of the world.
double SecondsPerByte(const NetworkModel& network, const Topology& topology);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_LAYER_COSTS_H_
