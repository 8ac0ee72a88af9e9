#include "apps/emulator/clock/round_items.h"

#include "apps/emulator/clock/item_list.h"
#include "apps/trainer/local/round_exchange.h"

namespace ringtail {

StatusOr<std::vector<ExchangeItem>> ItemsOfRound(
    const ExchangeSizes& sizes, std::span<const Parameter> parameters,
    const std::vector<int>& workers, const VirtualNetwork& network, const DistConfig& config,
    const CodedLayers* layers, const ExchangeTime& round) {
  RT_ASSIGN_OR_RETURN(ItemList items, ItemList::Create(workers, network, config.algorithm()));
  items.AllGather(sizeof(RankRound));
  if (sizes.statistics > 0) items.AllReduce(sizes.statistics);
  AddBuckets(sizes, parameters, config.local().compression(), layers, round, &items);
  return items.Finish();
}

}  // namespace ringtail
