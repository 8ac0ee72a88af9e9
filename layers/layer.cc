#include "layers/layer.h"

#include "core/check.h"

namespace ringtail {

bool Layer::FuseActivation(Activation) { return false; }

void Layer::Recompute(const ForwardArgs&) { RT_CHECK(false, "this layer is not recomputable"); }

ChannelAffine Layer::DstAffine(const std::byte*) const {
  RT_CHECK(false, "this layer's dst is no map of src");
  return {};
}

ChannelGradient Layer::DiffSrcMap(const float*, const std::byte*) const {
  RT_CHECK(false, "this layer's diff_src is no map of diff_dst");
  return {};
}

}  // namespace ringtail
