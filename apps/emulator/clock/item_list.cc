#include "apps/emulator/clock/item_list.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "dist/collectives/algorithms/all_to_all.h"
#include "dist/compression/direction_guard.h"
#include "dist/compression/exchange/payload_exchange.h"

namespace ringtail {
namespace {

// A bucket of which a layer is coded.
class CodedBucket {
 public:
  // `epoch`: since compression began.
  CodedBucket(const CodedLayers& layers, int world, int64_t step, double epoch)
      : layers_(layers), world_(world), step_(step), epoch_(epoch) {}

  void Add(size_t i, const Parameter& parameter) {
    const LayerScheme& scheme = layers_.schemes[i];
    if (!scheme.IsDue(step_, i)) return;
    const LayerCoding& coding = layers_.coding[i];
    const EncodeContext context{.shape = GradientShapeOf(parameter.spec), .epoch = epoch_};
    switch (layers_.routes[i]) {
      case LayerRoute::kDense:
        summed_[0] += parameter.elements;
        break;
      case LayerRoute::kSketched:
        sketching_ += coding.encode_seconds + coding.decode_seconds;
        for (int round = 0; round < scheme.sketch->rounds(); ++round) {
          summed_[round] += scheme.sketch->Floats(round);
        }
        break;
      case LayerRoute::kGathered:
        gathered_block_ += GatheredBytes(*scheme.codec, context, world_) / (world_ - 1);
        AddTo(&gathering_, coding);
        break;
      case LayerRoute::kSharded:
        AddSharded(PartBytesOf(*scheme.codec, context, world_));
        AddTo(&sharding_, coding);
        break;
    }
  }

  void AppendTo(ItemList* items) const {
    items->Code(sketching_);
    for (const int64_t floats : summed_) {
      if (floats > 0) items->AllReduce(floats);
    }
    if (gathered_block_ > 0) {
      items->Code(gathering_.encode_seconds);
      items->AllGather(gathered_block_);
      items->Code(world_ * gathering_.decode_seconds);
    }
    if (sharded_block_ > 0) {
      items->Code(sharding_.encode_seconds);
      items->AllToAll(sharded_block_);
      items->Code(sharding_.decode_seconds + sharding_.encode_seconds / world_);
      items->AllGather(sum_block_);
      items->Code(sharding_.decode_seconds);
    }
  }

 private:
  void AddSharded(const PartBytes& bytes) {
    sharded_block_ += bytes.gradient;
    sum_block_ += bytes.sum;
  }
  static void AddTo(LayerCoding* sum, const LayerCoding& coding) {
    sum->encode_seconds += coding.encode_seconds;
    sum->decode_seconds += coding.decode_seconds;
  }

  const CodedLayers& layers_;
  const int world_;
  const int64_t step_;
  const double epoch_;
  int64_t summed_[2] = {0, 0};  // floats, by round
  double sketching_ = 0;        // seconds
  // Bytes of a worker.
  int64_t gathered_block_ = 0, sharded_block_ = 0, sum_block_ = 0;
  LayerCoding gathering_, sharding_;
};

bool IsCoded(const CodedLayers& layers, size_t first, size_t count) {
  const auto begin = layers.routes.begin() + static_cast<std::ptrdiff_t>(first);
  return std::any_of(begin, begin + static_cast<std::ptrdiff_t>(count),
                     [](LayerRoute route) { return route != LayerRoute::kDense; });
}

}  // namespace

StatusOr<ItemList> ItemList::Create(const std::vector<int>& workers, const VirtualNetwork& network,
                                    std::string_view algorithm) {
  RT_ASSIGN_OR_RETURN(
      AlgorithmSelector selector,
      AlgorithmSelector::Create(algorithm, network.TopologyOf(workers), network.model()));
  return ItemList(workers, network, std::move(selector));
}

void ItemList::AllReduce(int64_t floats) {
  const AllreduceAlgorithm& algorithm = *selector_.Select(floats * kElementBytes).algorithm;
  Add(AllPlans(algorithm, topology_, floats));
}

void ItemList::AllGather(int64_t bytes_of_each) {
  Add({.plans = GatherItem(workers_, bytes_of_each, network_).plans});
}

void ItemList::AllToAll(int64_t block_bytes) {
  Plans plans;
  for (int rank = 0; rank < world(); ++rank) {
    plans.push_back(ringtail::AllToAll(rank, world(), block_bytes / kElementBytes));
  }
  Add(std::move(plans));
}

void ItemList::AddBucket(const GradientBucket& bucket, size_t first,
                         std::span<const Parameter> parameters, const CodedLayers& layers,
                         const ExchangeTime& time) {
  CodedBucket coded(layers, world(), time.step, time.epoch);
  for (size_t i = first; i < first + bucket.parameters; ++i) coded.Add(i, parameters[i]);
  coded.AppendTo(this);
}

void ItemList::EndBucket(double prepares) {
  // What is decoded at last, or takes no turn in this step, sends nothing.
  if (coding_s_ > 0 || items_.size() == first_) Add(Plans(static_cast<size_t>(world())));
  items_.back().prepares = prepares;
}

void ItemList::Add(Plans plans) {
  Add(ExchangeItem{.plans = std::make_shared<const Plans>(std::move(plans))});
}

void ItemList::Add(ExchangeItem item) {
  item.coding_s = std::exchange(coding_s_, 0);
  item.ready = ready_;
  items_.push_back(std::move(item));
}

void AddBuckets(const ExchangeSizes& sizes, std::span<const Parameter> parameters,
                const CompressionConfig& config, const CodedLayers* layers,
                const ExchangeTime& time, ItemList* items) {
  const bool codes = layers != nullptr && items->world() > 1 && time.epoch >= config.dense_epochs();
  const DirectionGuard guard(config.guard_every_steps(), sizes.buckets.size());
  size_t next = 0;
  for (size_t b = 0; b < sizes.buckets.size(); ++b) {
    const GradientBucket& bucket = sizes.buckets[b];
    const size_t first = std::exchange(next, next + bucket.parameters);
    items->set_ready(sizes.ready[b]);
    const bool coded = codes && IsCoded(*layers, first, bucket.parameters);
    if (!coded || guard.Guards(time.step, b)) items->AllReduce(bucket.range.count);
    if (coded) {
      items->AddBucket(bucket, first, parameters, *layers,
                       {.step = time.step, .epoch = time.epoch - config.dense_epochs()});
    }
    items->EndBucket(sizes.prepares[b]);
  }
}

}  // namespace ringtail
