// The parts of a net. Only for layers/net/net*.cc: net_setup.cc makes them, net.cc runs them,
// net_feature_map.cc runs them from the logits to a feature map, net_non_finite.cc searches them for
// the first NaN.
#ifndef RINGTAIL_LAYERS_NET_NET_IMPL_H_
#define RINGTAIL_LAYERS_NET_NET_IMPL_H_

#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "layers/net/deferral.h"
#include "layers/net/net.h"
#include "layers/net/net_memory.h"

namespace ringtail {

// A node made ready to run: its layer and the addresses of everything that it touches.
struct ReadyNode {
  std::unique_ptr<Layer> layer;
  BlobDesc dst_desc;
  bool learns = false;
  bool frozen = false;            // its parameters are fixed: it runs as in evaluation
  std::vector<const float*> src;  // entries for the images change with each batch
  std::vector<const float*> backward_src;
  float* dst = nullptr;
  float* diff_dst = nullptr;
  std::vector<float*> diff_src;
  std::vector<float*> add_to;       // where diff_src is a temporary: the gradient to add it to
  float* recomputed_dst = nullptr;  // where dst is dropped after forward
  std::vector<int> recompute;       // nodes to recompute before this one's backward
  // What this node does for its neighbours, and they for it.
  ForwardFusion forward_fusion;
  BackwardFusion backward_fusion;
  std::byte* state = nullptr;
  std::byte* forward_scratch = nullptr;
  std::byte* backward_scratch = nullptr;
};

struct Net::Impl {
  Model* model = nullptr;
  NetOptions options;
  std::vector<ReadyNode> nodes;
  std::vector<LayerInfo> infos;
  std::vector<NodeNeeds> needs;
  int64_t planned_bytes = 0;
  AlignedBuffer block;        // of planned_bytes; empty if the net is only planned
  std::byte* work = nullptr;  // NetOptions.work, behind the block in the plan
  std::vector<float> logits;
  LayerTimer timer;
  int feature_node = kNoNode;  // NetOptions.feature_map
  FeatureMap feature_map;
  StageBlobs boundaries;  // of a stage
  // Of the last Forward, for Backward.
  StepContext step, frozen_step;
  bool forward_done = false;

  bool has_backward() const { return options.training || options.feature_map.has_value(); }
  // net_setup.cc
  Status Build();
  StatusOr<std::vector<NodeNeeds>> SetUpLayers();
  Status PlanReceived(BlobDesc* images);
  void DescribeBoundaries(std::span<const NodeNeeds> needs);
  Status SetUpLayer(int i, const BlobDesc& images, const ShapeInfo& shape, BlobType dst_type,
                    std::span<std::unique_ptr<Layer>> layers, std::vector<NodeNeeds>* needs);
  FusionOffer OfferFusion(int i, std::span<const NodeNeeds> needs,
                          std::span<const std::unique_ptr<Layer>> layers) const;
  bool IsNormalizedByOnlyConsumer(int i, std::span<const std::unique_ptr<Layer>> layers) const;
  bool HasLaterConsumer(int i, int consumer) const;
  void Bind(const NetMemory& memory, std::span<const NodeNeeds> needs);
  std::byte* Address(int64_t offset);  // of the plan
  void BindPointers(int i, const NetMemory& memory, const NodeNeeds& needs);
  void BindDeferred(ReadyNode* consumer, int deferred, const NodePlacement& place,
                    const FusionPlan& consumer_plan);
  void BindNormalized(ReadyNode* normalization, int previous, const NodePlacement& place,
                      const FusionPlan& plan);
  // net.cc
  void CheckLabels(const BatchView& batch) const;
  void BeginPass(const BatchView& batch, const StepContext& context);
  void SetImages(const float* images);
  void ForwardNode(int i);
  void BackwardNode(int i);
  void Recompute(int i, float* dst);
  std::span<const float> Dst(int i, AlignedBuffer* spare);
  LossResult Loss();
  // net_feature_map.cc
  void MakeFeatureMap();
  void KeepFeatureMap();
  void KeepFeatureMapGradient();
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_NET_IMPL_H_
