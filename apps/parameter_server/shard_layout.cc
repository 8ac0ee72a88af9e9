#include "apps/parameter_server/shard_layout.h"

#include <algorithm>

#include "core/round.h"

namespace ringtail {
namespace {

constexpr int64_t kAlignFloats = 16;  // 64 bytes, as core/parameter.cc

}  // namespace

ShardLayout::ShardLayout(std::span<const Parameter> model, std::span<const size_t> chosen) {
  for (const size_t i : chosen) {
    const Parameter& parameter = model[i];
    pieces_.push_back({parameter.offset, elements_, parameter.elements});
    elements_ += RoundUp(parameter.elements, kAlignFloats);
  }
}

void ShardLayout::Gather(std::span<const float> model, std::span<float> own) const {
  for (const Piece& piece : pieces_) {
    const auto gap = std::copy_n(model.begin() + piece.model_offset, piece.elements,
                                 own.begin() + piece.own_offset);
    std::fill_n(gap, RoundUp(piece.elements, kAlignFloats) - piece.elements, 0.0f);
  }
}

void ShardLayout::Scatter(std::span<const float> own, std::span<float> model) const {
  for (const Piece& piece : pieces_) {
    std::copy_n(own.begin() + piece.own_offset, piece.elements, model.begin() + piece.model_offset);
  }
}

}  // namespace ringtail
