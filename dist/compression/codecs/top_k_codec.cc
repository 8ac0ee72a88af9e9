#include "dist/compression/codecs/top_k_codec.h"

#include <fmt/format.h>

#include <vector>

#include "dist/compression/codecs/largest.h"

namespace ringtail {

TopKCodec::TopKCodec(const TopKOptions& options) : options_(options) {
  RT_CHECK(options.density > 0 && options.density <= 1, "a density is above 0 and at most 1");
  RT_CHECK(options.sum_density >= 0 && options.sum_density <= 1, "a density is at most 1");
}

std::string TopKCodec::Describe() const {
  std::string text = fmt::format("the largest {:g}%", options_.density * 100);
  if (options_.sum_density > 0) text += fmt::format(", of sums {:g}%,", options_.sum_density * 100);
  return text + " as " + ValueFormatName(options_.values);
}

SparseLayout TopKCodec::LayoutOf(const EncodeContext& context) const {
  const bool of_sum = context.summands > 1 && options_.sum_density > 0;
  return {.elements = context.shape.elements(),
          .capacity =
              ShareOf(of_sum ? options_.sum_density : options_.density, context.shape.elements()),
          .format = options_.values};
}

int64_t TopKCodec::PayloadBytes(const EncodeContext& context) const {
  return LayoutOf(context).bytes();
}

void TopKCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                       std::span<std::byte> payload) const {
  static thread_local std::vector<int32_t> places;
  const SparseLayout layout = LayoutOf(context);
  LargestPlaces(gradient, layout.capacity, &places);
  WriteEntries(layout, gradient, places, payload);
}

Status TopKCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                            float scale, std::span<float> sum) const {
  return AddEntries(LayoutOf(context), payload, scale, sum);
}

}  // namespace ringtail
