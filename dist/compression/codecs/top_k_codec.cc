#include "dist/compression/codecs/top_k_codec.h"

#include <fmt/format.h>

#include <vector>

#include "dist/compression/codecs/largest.h"

namespace ringtail {

TopKCodec::TopKCodec(const TopKOptions& options) : options_(options) {
  RT_CHECK(options.density > 0 && options.density <= 1, "a density is above 0 and at most 1");
}

std::string TopKCodec::Describe() const {
  return fmt::format("the largest {:g}% as {}", options_.density * 100,
                     ValueFormatName(options_.values));
}

SparseLayout TopKCodec::LayoutOf(const GradientShape& shape) const {
  return {.elements = shape.elements(),
          .capacity = ShareOf(options_.density, shape.elements()),
          .format = options_.values};
}

int64_t TopKCodec::PayloadBytes(const EncodeContext& context) const {
  return LayoutOf(context.shape).bytes();
}

void TopKCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                       std::span<std::byte> payload) const {
  static thread_local std::vector<int32_t> places;
  const SparseLayout layout = LayoutOf(context.shape);
  LargestPlaces(gradient, layout.capacity, &places);
  WriteEntries(layout, gradient, places, payload);
}

Status TopKCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                            float scale, std::span<float> sum) const {
  return AddEntries(LayoutOf(context.shape), payload, scale, sum);
}

}  // namespace ringtail
