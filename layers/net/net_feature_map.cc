// What a net with a feature map does beside an evaluation: it keeps that blob, and runs backward from
// the logits to it.
#include <algorithm>

#include "core/check.h"
#include "layers/element_types/widen.h"
#include "layers/net/graph.h"
#include "layers/net/net_impl.h"
#include "layers/relayout.h"

namespace ringtail {

void Net::Impl::MakeFeatureMap() {
  feature_map.layer = infos[feature_node].name;
  feature_map.desc = nodes[feature_node].dst_desc.As(BlobType::kF32);
  feature_map.desc.block = 1;
  feature_map.values.resize(feature_map.desc.elements());
  feature_map.gradient.resize(feature_map.desc.elements());
}

// Right after the Forward of its node: later layers may write over it.
void Net::Impl::KeepFeatureMap() {
  AlignedBuffer spare;
  const BlobDesc desc = nodes[feature_node].dst_desc.As(BlobType::kF32);
  Relayout(desc, Dst(feature_node, &spare).data(), feature_map.desc, feature_map.values.data());
}

// When its last consumer has added to it.
void Net::Impl::KeepFeatureMapGradient() {
  const ReadyNode& node = nodes[feature_node];
  const BlobDesc desc = node.dst_desc.As(BlobType::kF32);
  AlignedBuffer wide;
  const float* gradient = node.diff_dst;
  if (node.dst_desc.type == BlobType::kBf16) {
    wide = AlignedBuffer(desc.bytes());
    WidenBlob(node.dst_desc, node.diff_dst, wide.floats().data());
    gradient = wide.floats().data();
  }
  Relayout(desc, gradient, feature_map.desc, feature_map.gradient.data());
}

void Net::BackwardFromLogits(std::span<const float> diff_logits) {
  Impl& net = *impl_;
  const int64_t classes = net.model->num_classes(), batch = net.options.batch;
  RT_CHECK(net.options.feature_map.has_value(), "only a net with a feature map has this backward");
  RT_CHECK(net.forward_done && !net.step.training, "it follows an evaluating Forward");
  RT_CHECK(std::ssize(diff_logits) == batch * classes, "one number per logit");
  net.forward_done = false;
  const int logits = net.model->graph().logits();
  const ReadyNode& scores = net.nodes[logits];
  const int64_t row = scores.dst_desc.elements() / batch;
  std::fill_n(scores.diff_dst, scores.dst_desc.elements(), 0.0F);
  for (int64_t n = 0; n < batch; ++n) {
    std::copy_n(diff_logits.data() + n * classes, classes, scores.diff_dst + n * row);
  }
  for (int i = logits; i > net.feature_node; --i) {
    if (net.nodes[i].learns) net.BackwardNode(i);
  }
  net.KeepFeatureMapGradient();
}

const FeatureMap& Net::feature_map() const {
  RT_CHECK(impl_->options.feature_map.has_value(), "the net keeps no feature map");
  return impl_->feature_map;
}

}  // namespace ringtail
