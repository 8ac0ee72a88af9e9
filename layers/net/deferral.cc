#include "layers/net/deferral.h"

namespace ringtail {

Deferral::Deferral(std::span<const NodeNeeds> nodes, const NetMemoryOptions& options)
    : nodes_(nodes), options_(options), consumers_(nodes.size()), uses_(nodes.size(), 0) {
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    for (const int input : nodes[i].inputs) {
      if (input < 0) continue;
      ++uses_[input];
      std::vector<int>& consumers = consumers_[input];
      if (consumers.empty() || consumers.back() != i) consumers.push_back(i);
    }
  }
}

// Its src is still there when it is recomputed: its own backward, which comes later, needs it. A
// src that is dropped itself is not.
bool Deferral::IsDropped(int i) const {
  const LayerPlan& plan = nodes_[i].plan;
  const int input = nodes_[i].inputs[0];
  return options_.recompute && Learns(i) && plan.recomputable && plan.backward_needs_src &&
         !plan.backward_needs_dst && !(input >= 0 && IsDropped(input));
}

int Deferral::DeferredConsumer(int i) const {
  const LayerPlan& plan = nodes_[i].plan;
  const bool possible = options_.defer && plan.fusion.dst_is_affine && !plan.backward_needs_dst &&
                        nodes_[i].inputs[0] >= 0 && uses_[i] == 1;
  if (!possible) return kNoNode;
  const int consumer = consumers_[i].front();
  return nodes_[consumer].inputs[0] == i ? consumer : kNoNode;
}

// In backward src[0] is still there, as for IsDropped.
bool Deferral::IsDeferredBackward(int i) const {
  const int consumer = DeferredConsumer(i);
  return consumer != kNoNode && ReadsSrcBackward(consumer) && ReadsSrcBackward(i) &&
         nodes_[consumer].plan.fusion.backward_takes_affine && !IsDropped(nodes_[i].inputs[0]);
}

// Not where dst would have to be kept for backward all the same.
bool Deferral::IsDeferredForward(int i) const {
  const int consumer = DeferredConsumer(i);
  return consumer != kNoNode && nodes_[consumer].plan.fusion.forward_takes_affine &&
         (!ReadsSrcBackward(consumer) || IsDeferredBackward(i) || IsDropped(i));
}

int64_t Deferral::GradientSumsPixels(int i) const {
  if (!IsDeferredBackward(i)) return 0;
  return nodes_[DeferredConsumer(i)].plan.fusion.diff_src_sums_pixels;
}

}  // namespace ringtail
