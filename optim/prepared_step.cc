#include "optim/prepared_step.h"

#include "core/check.h"

namespace ringtail {

void PreparedStep::Begin(double grad_scale) {
  grad_scale_ = grad_scale;
  parts_.clear();
}

std::span<float> PreparedStep::Add(const ParameterArena& arena, size_t parameter) {
  if (block_.size_bytes() == 0) block_ = AlignedBuffer(arena.values().size_bytes());
  parts_.resize(arena.parameters().size());
  RT_CHECK(parts_[parameter].empty(), "a parameter is prepared once in a step");
  const Parameter& p = arena.parameters()[parameter];
  return parts_[parameter] = block_.floats().subspan(p.offset, p.elements);
}

std::span<const float> PreparedStep::Of(size_t parameter) const {
  return parameter < parts_.size() ? parts_[parameter] : std::span<float>();
}

}  // namespace ringtail
