// ExchangeItems: what workers exchange in a step, in this order, as plans of the algorithms that
// real ranks would choose (dist/collectives/selector.h). round_items.h has those of rounds.
//
//   step    [sums][statistics][bucket 0][bucket 1]..[bucket n][roll call]   beside the update
//   ready    f     f           as backward ends      1         when bucket n is there
//   prepares                       part 0    part 1
//
// Buckets: item_list.h.
// `ready`: the fraction of forward and backward after which an item may begin, by the FLOPs of the
// layers: forward takes a third, backward the rest, from the last layer to the first.
// Thread-safety: functions without state. Cost: makes the plans of all members.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_EXCHANGE_ITEMS_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_EXCHANGE_ITEMS_H_

#include <memory>
#include <span>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/emulator/clock/virtual_network.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/dist.pb.h"
#include "dist/gradients/gradient_buckets.h"
#include "layers/net/net.h"

namespace ringtail {

struct ExchangeItem {
  std::shared_ptr<const Plans> plans;
  double ready = 0;
  double coding_s = 0;  // a member encodes and decodes so long before it begins the item
  // Of what can be prepared of the update, the part for which this item's end is enough.
  double prepares = 0;
};

// What is exchanged does not depend on who exchanges it.
struct ExchangeSizes {
  int64_t statistics = 0;  // floats
  std::vector<GradientBucket> buckets;
  std::vector<double> ready;     // by bucket
  std::vector<double> prepares;  // by bucket: ExchangeItem's
  double forward = 0;            // the fraction that forward takes
};
// `work`: Optimizer::PreparableWork.
ExchangeSizes SizesOfExchange(const ParameterArena& arena, std::span<const LayerInfo> layers,
                              const DistConfig& config, std::span<const double> work);

// When an exchange is: what compression depends on.
struct ExchangeTime {
  int64_t step = 0;  // or round, of the run
  double epoch = 0;
};

// By `workers`. `layers`: null if nothing is compressed. InvalidArgument for an algorithm that does
// not exist.
StatusOr<std::vector<ExchangeItem>> ItemsOfExchange(
    const ExchangeSizes& sizes, std::span<const Parameter> parameters,
    const std::vector<int>& workers, const VirtualNetwork& network, const DistConfig& config,
    const CodedLayers* layers, const ExchangeTime& step);
// What every member of a step tells the others at its end.
ExchangeItem RollCallItem(const std::vector<int>& workers, const VirtualNetwork& network);
// An allgather of so many bytes of each; a multiple of kElementBytes.
ExchangeItem GatherItem(const std::vector<int>& workers, int64_t bytes,
                        const VirtualNetwork& network);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_EXCHANGE_ITEMS_H_
