// What a net is made of. Only for layers/net/net*.cc: net_setup.cc makes it, net.cc runs it,
// net_non_finite.cc looks for what went wrong in it.
#ifndef RINGTAIL_LAYERS_NET_NET_IMPL_H_
#define RINGTAIL_LAYERS_NET_NET_IMPL_H_

#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "layers/net/net.h"
#include "layers/net/net_memory.h"

namespace ringtail {

// A node made ready to run: its layer and the addresses of everything that it touches.
struct ReadyNode {
  std::unique_ptr<Layer> layer;
  BlobDesc dst_desc;
  bool learns = false;
  std::vector<const float*> src;  // entries for the images change with each batch
  std::vector<const float*> backward_src;
  float* dst = nullptr;
  float* diff_dst = nullptr;
  std::vector<float*> diff_src;
  std::vector<float*> add_to;       // where diff_src is a temporary: the gradient to add it to
  float* recomputed_dst = nullptr;  // where dst is dropped after forward
  std::vector<int> recompute;       // nodes to recompute before this one's backward
  // Where src[0] is the src of a deferred node: that node's map.
  ChannelAffine src_affine, backward_src_affine;
  BlobMoments src_moments, dst_moments;           // where this node or the one before takes them
  BlobGradientSums diff_src_sums, diff_dst_sums;  // where this node or the one behind takes them
  ChannelGradient diff_dst_map;  // where diff_dst is that of the reader, a batch norm
  bool add_to_diff_src = false;
  std::byte* state = nullptr;
  std::byte* forward_scratch = nullptr;
  std::byte* backward_scratch = nullptr;
};

struct Net::Impl {
  Model* model = nullptr;
  NetOptions options;
  std::vector<ReadyNode> nodes;
  std::vector<LayerInfo> infos;
  int64_t planned_bytes = 0;
  AlignedBuffer block;  // of so many; none if it is only planned
  std::vector<float> logits;
  LayerTimer timer;
  // What Backward needs of the last Forward.
  StepContext step;
  bool forward_done = false;

  // net_setup.cc
  Status Build();
  StatusOr<std::vector<NodeNeeds>> SetUpLayers();
  Status SetUpLayer(int i, const BlobDesc& images, const ShapeInfo& shape,
                    std::span<std::unique_ptr<Layer>> layers, std::vector<NodeNeeds>* needs);
  bool IsAffineOfOneReader(int i, std::span<const NodeNeeds> needs) const;
  bool IsNormalizedByOneReader(int i, std::span<const std::unique_ptr<Layer>> layers) const;
  bool HasReaderBehind(int i, int reader) const;
  void Bind(const NetMemory& memory, std::span<const NodeNeeds> needs);
  void BindDeferred(ReadyNode* reader, int deferred, const NodePlacement& place,
                    const LayerPlan& reader_plan);
  void BindNormalized(ReadyNode* reader, int normalized, const NodePlacement& place,
                      const LayerPlan& plan);
  // net.cc
  void SetImages(const float* images);
  void ForwardNode(int i);
  void BackwardNode(int i);
  void Recompute(int i, float* dst);
  std::span<const float> Dst(int i, AlignedBuffer* spare);
  LossResult Loss();
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_NET_IMPL_H_
