#include "dist/compression/codecs/payload.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace ringtail {
namespace {

constexpr uint32_t kNotANumberBits = 0x7fc00000;
constexpr float kSmallestScale = 0x1p-100F;

}  // namespace

void CheckEncode(const Codec& codec, const EncodeContext& context, std::span<const float> gradient,
                 std::span<const std::byte> payload) {
  RT_CHECK(std::ssize(gradient) == context.shape.elements(),
           "a gradient has the elements of its shape");
  RT_CHECK(std::ssize(payload) == codec.PayloadBytes(context),
           "a payload has the length that its codec says");
}

Status CheckDecode(const Codec& codec, const EncodeContext& context,
                   std::span<const std::byte> payload, std::span<const float> sum) {
  RT_CHECK(std::ssize(sum) == context.shape.elements(), "a sum has the elements of its shape");
  const int64_t expected = codec.PayloadBytes(context);
  if (std::ssize(payload) == expected) return OkStatus();
  return BadPayload(codec, fmt::format("{} bytes instead of {}", payload.size(), expected));
}

Status BadPayload(const Codec& codec, std::string_view what) {
  return DataLoss(fmt::format("payload of '{}': {}", codec.Describe(), what));
}

float ToScale(double value) {
  const auto scale = static_cast<float>(value);
  if (!std::isfinite(scale)) return std::bit_cast<float>(kNotANumberBits);
  return scale < kSmallestScale ? 0 : scale;
}

bool IsScale(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return bits == 0 || bits == kNotANumberBits || (value >= kSmallestScale && std::isfinite(value));
}

bool IsNumber(float scale) { return !std::isnan(scale); }

void StoreFloat(float value, std::span<std::byte> payload, int64_t n) {
  std::memcpy(payload.subspan(static_cast<size_t>(n) * sizeof(float)).data(), &value,
              sizeof(value));
}

float LoadFloat(std::span<const std::byte> payload, int64_t n) {
  float value = 0;
  std::memcpy(&value, payload.subspan(static_cast<size_t>(n) * sizeof(float)).data(),
              sizeof(value));
  return value;
}

std::span<uint8_t> BytesAt(std::span<std::byte> payload, int64_t begin, int64_t bytes) {
  const auto part = payload.subspan(static_cast<size_t>(begin), static_cast<size_t>(bytes));
  return {reinterpret_cast<uint8_t*>(part.data()), part.size()};
}

std::span<const uint8_t> BytesAt(std::span<const std::byte> payload, int64_t begin, int64_t bytes) {
  const auto part = payload.subspan(static_cast<size_t>(begin), static_cast<size_t>(bytes));
  return {reinterpret_cast<const uint8_t*>(part.data()), part.size()};
}

bool EndsClear(std::span<const uint8_t> plane, int64_t bits) {
  return bits % 8 == 0 || plane.back() >> bits % 8 == 0;
}

void AddNotANumber(std::span<float> sum) {
  for (float& element : sum) element += std::bit_cast<float>(kNotANumberBits);
}

RngKey DrawKey(const EncodeContext& context) {
  return RngKey(context.seed)
      .With(kCompressionStream)
      .With(context.step)
      .With(context.parameter)
      .With(context.part)
      .With(context.rank);
}

}  // namespace ringtail
