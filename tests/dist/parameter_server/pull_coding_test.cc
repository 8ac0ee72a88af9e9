#include "dist/parameter_server/pull_coding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace ringtail {
namespace {

using Config = AsynchronousConfig;

// Weights that no code represents, of a shard with blocks that are not full.
std::vector<float> WeightsOf(int64_t version, size_t elements = 2501) {
  std::vector<float> weights(elements);
  for (size_t i = 0; i < elements; ++i) {
    const auto place = static_cast<float>(i);
    weights[i] = std::sin(place) + 1e-3F * static_cast<float>(version) * std::cos(3 * place);
  }
  return weights;
}

// As it comes from the wire.
std::vector<uint64_t> CopyOf(std::span<const std::byte> payload) {
  std::vector<uint64_t> words((payload.size() + 7) / 8);
  std::memcpy(words.data(), payload.data(), payload.size());
  return words;
}

std::span<const std::byte> Bytes(const std::vector<uint64_t>& words, size_t bytes) {
  return std::as_bytes(std::span(words)).first(bytes);
}

double LargestError(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max<double>(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(PullCodingTest, FloatsAreExactAndHalvesAreRounded) {
  const std::vector<float> weights = WeightsOf(3);
  std::vector<float> pulled(weights.size());
  PullEncoder floats(Config::F32, 1, std::ssize(weights));
  PullDecoder of_floats(Config::F32, std::ssize(weights));
  EXPECT_TRUE(of_floats.Decode(floats.Encode(weights, 3, kNoKey), pulled).ok());
  EXPECT_EQ(pulled, weights);
  PullEncoder halves(Config::BF16, 1, std::ssize(weights));
  PullDecoder of_halves(Config::BF16, std::ssize(weights));
  const std::span<const std::byte> payload = halves.Encode(weights, 3, kNoKey);
  EXPECT_EQ(payload.size(), 2 * weights.size());
  EXPECT_TRUE(of_halves.Decode(payload, pulled).ok());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_LE(std::abs(pulled[i] - weights[i]), std::ldexp(std::abs(weights[i]), -8));
  }
}

// A worker that pulls every version and one that pulls some: a new key after 4 updates, for each of
// them once; the error is that of the change since the key, whatever came before.
TEST(PullCodingTest, DifferencesToAKey) {
  constexpr int64_t kVersions = 4;
  const int64_t elements = std::ssize(WeightsOf(0));
  PullEncoder encoder(Config::DELTA, kVersions, elements);
  PullDecoder often(Config::DELTA, elements), seldom(Config::DELTA, elements);
  const auto pull = [&](int64_t version, PullDecoder* worker) {
    const std::vector<float> weights = WeightsOf(version);
    const std::span<const std::byte> payload = encoder.Encode(weights, version, worker->key());
    std::vector<float> pulled(weights.size());
    EXPECT_TRUE(worker->Decode(payload, pulled).ok());
    // Half a step of a change of at most 1e-3 a version.
    const double changed = 1e-3 * static_cast<double>(version - worker->key());
    EXPECT_LE(LargestError(pulled, weights), changed / 254 + 2e-7) << version;
    return std::ssize(payload);
  };
  const int64_t with_key = often.MostBytes(), without = with_key - 4 * (elements + 1);
  EXPECT_LT(without, elements + elements / 64);
  for (int64_t version = 0; version < 3 * kVersions; ++version) {
    EXPECT_EQ(pull(version, &often), version % kVersions == 0 ? with_key : without) << version;
    if (version % 3 == 2) pull(version, &seldom);
  }
  EXPECT_EQ(often.key(), 2 * kVersions);
  EXPECT_EQ(seldom.key(), 2 * kVersions);
  EXPECT_EQ(pull(3 * kVersions - 1, &seldom), without);
}

TEST(PullCodingTest, ADecoderTrustsNothing) {
  const std::vector<float> weights = WeightsOf(0, 100);
  std::vector<float> pulled(weights.size());
  PullEncoder encoder(Config::DELTA, 1, 100);
  PullDecoder decoder(Config::DELTA, 100);
  const std::vector<uint64_t> first = CopyOf(encoder.Encode(weights, 0, kNoKey));
  const auto bytes = static_cast<size_t>(decoder.MostBytes());
  for (const size_t length : {size_t{0}, size_t{7}, size_t{8}, bytes - 1}) {
    EXPECT_EQ(decoder.Decode(Bytes(first, length), pulled).code(), StatusCode::kDataLoss) << length;
  }
  // A difference to a key that it does not have: before it has one, and of another version.
  const std::vector<uint64_t> difference = CopyOf(encoder.Encode(weights, 0, 0));
  const size_t short_bytes = bytes - 4 * weights.size();
  EXPECT_THAT(decoder.Decode(Bytes(difference, short_bytes), pulled).message(),
              testing::HasSubstr("this worker has none"));
  ASSERT_TRUE(decoder.Decode(Bytes(first, bytes), pulled).ok());
  EXPECT_EQ(pulled, weights);
  EXPECT_TRUE(decoder.Decode(Bytes(difference, short_bytes), pulled).ok());
  std::vector<uint64_t> other = difference;
  other[0] = 7;
  EXPECT_THAT(decoder.Decode(Bytes(other, short_bytes), pulled).message(),
              testing::HasSubstr("relative to version 7"));
  // A code that is never written.
  std::vector<uint64_t> damaged = difference;
  std::memset(reinterpret_cast<std::byte*>(damaged.data()) + short_bytes - 1, 0x80, 1);
  EXPECT_EQ(decoder.Decode(Bytes(damaged, short_bytes), pulled).code(), StatusCode::kDataLoss);
  PullDecoder floats(Config::F32, 100);
  EXPECT_EQ(floats.Decode(Bytes(first, 4 * 99), pulled).code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace ringtail
