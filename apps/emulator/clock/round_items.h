// RoundItems: what workers exchange at the end of a round of local steps, in the order of
// RoundExchange (apps/trainer/local/round_exchange.h):
//
//   [RankRound of all][statistics][bucket 0][bucket 1] .. [bucket n]
//
// Buckets: item_list.h. Bytes are those that real ranks send. Thread-safety: functions without
// state. Cost: makes the plans of all members.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_ROUND_ITEMS_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_ROUND_ITEMS_H_

#include <span>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/emulator/clock/exchange_items.h"
#include "apps/emulator/clock/virtual_network.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/dist.pb.h"

namespace ringtail {

// By `workers`. `layers` is null if nothing is compressed. InvalidArgument for an algorithm that does
// not exist. `round`: its number, and the epoch of its first step.
StatusOr<std::vector<ExchangeItem>> ItemsOfRound(
    const ExchangeSizes& sizes, std::span<const Parameter> parameters,
    const std::vector<int>& workers, const VirtualNetwork& network, const DistConfig& config,
    const CodedLayers* layers, const ExchangeTime& round);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_ROUND_ITEMS_H_
