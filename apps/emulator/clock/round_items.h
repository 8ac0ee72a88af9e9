// RoundItems: what workers exchange at the end of a round of local steps, in the order of
// RoundExchange (apps/trainer/local/round_exchange.h):
//
//   [RankRound of all][statistics][bucket 0][bucket 1] .. [bucket n]
//
//   a bucket    allreduce of its range; or, if a layer of it is coded (CompressedReducer):
//               [guarded: allreduce of its range]
//               pack, allreduce of dense layers and sketches, allreduce of sketches' second round
//               encode, allgather, decode                                        gathered layers
//               encode, all-to-all, add up and encode, allgather, decode         sharded layers
//
// Bytes are those that real ranks send. Thread-safety: functions without state. Cost: makes the
// plans of all members.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_ROUND_ITEMS_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_ROUND_ITEMS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/emulator/clock/exchange_items.h"
#include "apps/emulator/clock/virtual_network.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/dist.pb.h"

namespace ringtail {

struct RoundOfItems {
  int64_t round = 0;  // of the run
  double epoch = 0;   // at its first step
};

// By `workers`. `layers` is null if nothing is compressed. InvalidArgument for an algorithm that does
// not exist.
StatusOr<std::vector<ExchangeItem>> ItemsOfRound(
    const ExchangeSizes& sizes, std::span<const Parameter> parameters,
    const std::vector<int>& workers, const VirtualNetwork& network, const DistConfig& config,
    const CodedLayers* layers, const RoundOfItems& round);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_ROUND_ITEMS_H_
