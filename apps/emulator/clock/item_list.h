// ItemList: makes the items of an exchange, one after the other, by the algorithms that real ranks
// would choose (dist/collectives/selector.h).
//
//   a bucket    allreduce of its range; or, if a layer of it is coded (CompressedReducer):
//               [guarded: allreduce of its range]
//               pack, allreduce of dense layers and sketches, allreduce of sketches' second round
//               encode, allgather, decode                                        gathered layers
//               encode, all-to-all, add up and encode, allgather, decode         sharded layers
//
// Bytes are those that real ranks send. Thread-safety: none. Cost: makes the plans of all members.
#ifndef RINGTAIL_APPS_EMULATOR_CLOCK_ITEM_LIST_H_
#define RINGTAIL_APPS_EMULATOR_CLOCK_ITEM_LIST_H_

#include <cstdint>
#include <span>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/emulator/clock/exchange_items.h"
#include "apps/emulator/clock/virtual_network.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/collectives/selector.h"
#include "dist/compression/compression.pb.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

class ItemList {
 public:
  // Of `workers`. InvalidArgument for an algorithm that does not exist.
  static StatusOr<ItemList> Create(const std::vector<int>& workers, const VirtualNetwork& network,
                                   std::string_view algorithm);

  int world() const { return topology_.world(); }

  // Of the items that are added from now on, which may be those of a bucket.
  void set_ready(double ready) {
    ready_ = ready;
    first_ = items_.size();
  }
  // Delays the next one.
  void Code(double seconds) { coding_s_ += seconds; }
  void AllReduce(int64_t floats);
  void AllGather(int64_t bytes_of_each);
  void AllToAll(int64_t block_bytes);
  // `time`: its epoch since compression began. The parameters of the bucket are [first, first + bucket.parameters).
  void AddBucket(const GradientBucket& bucket, size_t first, std::span<const Parameter> parameters,
                 const CodedLayers& layers, const ExchangeTime& time);

  // The items since set_ready are those of a bucket; there is at least one, though it may send nothing.
  // `prepares`: ExchangeItem's.
  void EndBucket(double prepares);
  std::vector<ExchangeItem> Finish() { return std::move(items_); }

 private:
  ItemList(const std::vector<int>& workers, const VirtualNetwork& network,
           AlgorithmSelector selector)
      : workers_(workers),
        network_(network),
        topology_(network.TopologyOf(workers)),
        selector_(std::move(selector)) {}
  void Add(Plans plans);
  void Add(ExchangeItem item);

  const std::vector<int> workers_;
  const VirtualNetwork& network_;
  const Topology topology_;
  AlgorithmSelector selector_;
  std::vector<ExchangeItem> items_;
  double coding_s_ = 0, ready_ = 0;
  size_t first_ = 0;  // item of the bucket
};

// The buckets of an exchange, coded or not: those of `sizes`, ready when it says.
// `layers`: null if nothing is compressed; `config`: what they are compressed with.
void AddBuckets(const ExchangeSizes& sizes, std::span<const Parameter> parameters,
                const CompressionConfig& config, const CodedLayers* layers,
                const ExchangeTime& time, ItemList* items);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_CLOCK_ITEM_LIST_H_
