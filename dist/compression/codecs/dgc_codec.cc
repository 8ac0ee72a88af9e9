#include "dist/compression/codecs/dgc_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "dist/compression/codecs/largest.h"
#include "dist/compression/codecs/magnitude.h"

namespace ringtail {
namespace {

constexpr int64_t kSmall = 1 << 14;  // fewer elements: a sample of 1% says too little
constexpr int64_t kSampledPart = 100;
constexpr int kTries = 10;

uint32_t Scaled(uint32_t magnitude, float factor) {
  return Magnitude(std::bit_cast<float>(magnitude) * factor);
}

// Places where |a| reaches a threshold that about target.entries elements reach.
void FindPlaces(std::span<const float> a, const DgcCodec::Target& target,
                std::vector<int32_t>* places) {
  const auto n = static_cast<int64_t>(a.size());
  if (n < kSmall) return LargestPlaces(a, target.entries, places);
  const std::vector<uint32_t> sample = SampleMagnitudes(a, n / kSampledPart);
  const auto size = static_cast<int64_t>(sample.size());
  const int64_t rank = std::clamp<int64_t>(target.entries * size / n, 1, size);
  uint32_t threshold = KthLargest(sample, rank).magnitude;
  uint32_t too_low = 0, too_high = 0;  // 0: none yet
  for (int i = 0; i < kTries && threshold > 0; ++i) {
    const int64_t count = CountAtLeast(a, threshold);
    if (count >= target.least && count <= target.most) {
      places->resize(count);
      return FindAtLeast(a, threshold, *places);
    }
    (count > target.most ? too_low : too_high) = threshold;
    if (too_low > 0 && too_high > 0) {
      threshold = too_low + (too_high - too_low) / 2;  // halfway in bits: nearly in logarithms
    } else {
      threshold = count > target.most ? Scaled(threshold, 1.3f) : Scaled(threshold, 0.8f);
    }
  }
  LargestPlaces(a, target.entries, places);
}

}  // namespace

DgcCodec::DgcCodec(const DgcOptions& options) : options_(options) {
  RT_CHECK(!options.densities.empty(), "the first epoch has a density");
  for (const double density : options.densities) {
    RT_CHECK(density > 0 && density <= 1, "a density is above 0 and at most 1");
  }
}

std::string DgcCodec::Describe() const {
  const double first = options_.densities.front() * 100, last = options_.densities.back() * 100;
  const char* values = ValueFormatName(options_.values);
  if (options_.densities.size() == 1) return fmt::format("DGC: {:g}% as {}", last, values);
  return fmt::format("DGC: {:g}% to {:g}% by epoch {}, as {}", first, last,
                     options_.densities.size() - 1, values);
}

DgcCodec::Target DgcCodec::TargetOf(const EncodeContext& context) const {
  const double last = static_cast<double>(options_.densities.size() - 1);
  const auto epoch = static_cast<size_t>(std::clamp(std::floor(context.epoch), 0.0, last));
  const int64_t n = context.shape.elements(), k = ShareOf(options_.densities[epoch], n);
  return {.entries = k, .least = (8 * k + 9) / 10, .most = std::min(n, (13 * k + 9) / 10)};
}

SparseLayout DgcCodec::LayoutOf(const EncodeContext& context) const {
  return {.elements = context.shape.elements(),
          .capacity = TargetOf(context).most,
          .format = options_.values};
}

int64_t DgcCodec::PayloadBytes(const EncodeContext& context) const {
  return LayoutOf(context).bytes();
}

void DgcCodec::Encode(const EncodeContext& context, std::span<const float> gradient,
                      std::span<std::byte> payload) const {
  // Codecs have no state, and the threads that encode live long: they reuse their scratch memory.
  static thread_local std::vector<int32_t> places;
  FindPlaces(gradient, TargetOf(context), &places);
  WriteEntries(LayoutOf(context), gradient, places, payload);
}

Status DgcCodec::DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                           float scale, std::span<float> sum) const {
  return AddEntries(LayoutOf(context), payload, scale, sum);
}

void DgcCodec::ForEachSent(const EncodeContext& context, std::span<const std::byte> payload,
                           const VisitSent& visit) const {
  static thread_local SparseEntries entries;
  const Status read = ReadEntries(LayoutOf(context), payload, &entries);
  RT_CHECK(read.ok(), read.ToString());
  for (size_t i = 0; i < entries.places.size(); ++i) visit(entries.places[i], entries.values[i]);
}

}  // namespace ringtail
