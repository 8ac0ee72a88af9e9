// Which type each blob of a net has: the one that the run asks for, except where a layer has a
// `precision` of its own; images, logits and the loss are f32.
// Thread-safety: pure functions.
#ifndef RINGTAIL_LAYERS_NET_PRECISION_H_
#define RINGTAIL_LAYERS_NET_PRECISION_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "layers/blob.h"
#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

class Graph;
class Model;
struct LayerInfo;

// Of one that is decided: not AUTO.
constexpr BlobType BlobTypeOf(Precision precision) {
  return precision == BFLOAT16 ? BlobType::kBf16 : BlobType::kF32;
}

// Of the dst of each node.
std::vector<BlobType> DstTypes(const Graph& graph, BlobType wanted);
// The same of a model; of a stage: as in the whole net, what is received first.
std::vector<BlobType> DstTypes(const Model& model);

// `layers`, those of the graph's nodes, each behind a ThroughF32Layer where it does not run on the
// types around it; returns which ones are.
std::vector<bool> PutThroughF32(const Graph& graph, std::span<const BlobType> dst_types,
                                std::span<std::unique_ptr<Layer>> layers);

// For people, after "precision: ": which one a net with these layers has, and on what it computes.
std::string DescribePrecision(std::span<const LayerInfo> layers);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_PRECISION_H_
