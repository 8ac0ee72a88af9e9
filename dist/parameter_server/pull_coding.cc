#include "dist/parameter_server/pull_coding.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "core/check.h"
#include "dist/compression/codecs/linear_codec.h"
#include "dist/compression/kernels/cast.h"

namespace ringtail {
namespace {

using Pull = AsynchronousConfig::Pull;

constexpr int64_t kHeaderBytes = sizeof(int64_t);

LinearCodec DeltaCodec() { return LinearCodec({.bits = 8}); }

EncodeContext ContextOf(int64_t elements) { return {.shape = {.columns = elements}}; }

int64_t DifferenceBytes(int64_t elements) { return DeltaCodec().PayloadBytes(ContextOf(elements)); }

// What follows starts at a multiple of 8 bytes.
int64_t KeyBytes(int64_t elements) {
  constexpr int64_t kTogether = sizeof(uint64_t) / sizeof(float);
  return (elements + kTogether - 1) / kTogether * static_cast<int64_t>(sizeof(uint64_t));
}

Status WrongLength(size_t bytes, int64_t elements) {
  return DataLoss(
      fmt::format("a pull of {} weights in {} bytes, which no server sends; do all ranks "
                  "run the same program and config?",
                  elements, bytes));
}

}  // namespace

PullEncoder::PullEncoder(Pull form, int64_t key_versions, int64_t elements)
    : form_(form), key_versions_(key_versions), elements_(elements) {
  RT_CHECK(key_versions >= 1 && elements >= 0, "a key for at least one version");
}

std::span<std::byte> PullEncoder::Buffer(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  buffer_.resize((size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
  return std::as_writable_bytes(std::span(buffer_)).first(size);
}

std::span<const std::byte> PullEncoder::Encode(std::span<const float> weights, int64_t version,
                                               int64_t known_key) {
  RT_CHECK(std::ssize(weights) == elements_, "the weights of the whole shard");
  switch (form_) {
    case AsynchronousConfig::F32:
      return std::as_bytes(weights);
    case AsynchronousConfig::BF16: {
      const std::span<std::byte> payload = Buffer(elements_ * int64_t{sizeof(uint16_t)});
      RT_KERNEL(ToBf16, weights.data(), elements_, reinterpret_cast<uint16_t*>(payload.data()));
      return payload;
    }
    case AsynchronousConfig::DELTA:
      break;
  }
  if (key_version_ == kNoKey || version - key_version_ >= key_versions_) {
    key_.assign(weights.begin(), weights.end());
    key_version_ = version;
  }
  return EncodeDelta(weights, known_key);
}

std::span<const std::byte> PullEncoder::EncodeDelta(std::span<const float> weights,
                                                    int64_t known_key) {
  const int64_t key_bytes = known_key == key_version_ ? 0 : KeyBytes(elements_);
  const std::span<std::byte> payload =
      Buffer(kHeaderBytes + key_bytes + DifferenceBytes(elements_));
  std::memcpy(payload.data(), &key_version_, sizeof(key_version_));
  if (key_bytes > 0) {
    std::ranges::fill(payload.subspan(kHeaderBytes, key_bytes), std::byte{0});
    std::ranges::copy(std::as_bytes(std::span(key_)), payload.begin() + kHeaderBytes);
  }
  difference_.resize(weights.size());
  std::ranges::transform(weights, key_, difference_.begin(), std::minus<>());
  DeltaCodec().Encode(ContextOf(elements_), difference_, payload.subspan(kHeaderBytes + key_bytes));
  return payload;
}

int64_t PullDecoder::MostBytes() const {
  switch (form_) {
    case AsynchronousConfig::F32:
      return elements_ * int64_t{sizeof(float)};
    case AsynchronousConfig::BF16:
      return elements_ * int64_t{sizeof(uint16_t)};
    case AsynchronousConfig::DELTA:
      return kHeaderBytes + KeyBytes(elements_) + DifferenceBytes(elements_);
  }
  return 0;
}

Status PullDecoder::Decode(std::span<const std::byte> payload, std::span<float> weights) {
  RT_CHECK(std::ssize(weights) == elements_, "room for the whole shard");
  if (form_ == AsynchronousConfig::DELTA) return DecodeDelta(payload, weights);
  if (std::ssize(payload) != MostBytes()) return WrongLength(payload.size(), elements_);
  if (form_ == AsynchronousConfig::F32) {
    std::ranges::copy(payload, std::as_writable_bytes(weights).begin());
    return OkStatus();
  }
  std::ranges::fill(weights, 0.0F);
  RT_KERNEL(AddBf16, reinterpret_cast<const uint16_t*>(payload.data()), elements_, 1.0F,
            weights.data());
  return OkStatus();
}

Status PullDecoder::DecodeDelta(std::span<const std::byte> payload, std::span<float> weights) {
  const int64_t with_key = MostBytes(), without = with_key - KeyBytes(elements_);
  if (std::ssize(payload) != with_key && std::ssize(payload) != without) {
    return WrongLength(payload.size(), elements_);
  }
  int64_t version = 0;
  std::memcpy(&version, payload.data(), sizeof(version));
  payload = payload.subspan(kHeaderBytes);
  if (std::ssize(payload) + kHeaderBytes == with_key) {
    key_.resize(weights.size());
    std::ranges::copy(payload.first(std::as_bytes(weights).size()),
                      std::as_writable_bytes(std::span(key_)).begin());
    key_version_ = version;
    payload = payload.subspan(KeyBytes(elements_));
  } else if (version != key_version_ || version == kNoKey) {
    return DataLoss(
        fmt::format("a pull whose weights are relative to version {}, but this worker has {}",
                    version, key_version_ == kNoKey ? "none" : std::to_string(key_version_)));
  }
  std::ranges::copy(key_, weights.begin());
  return DeltaCodec().DecodeAdd(ContextOf(elements_), payload, 1, weights);
}

}  // namespace ringtail
