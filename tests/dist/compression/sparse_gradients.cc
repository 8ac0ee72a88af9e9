#include "tests/dist/compression/sparse_gradients.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/random.h"

namespace ringtail {
namespace {

double Norm(std::span<const double> a) { return std::sqrt(Dot(a, a)); }

std::byte RandomByte(Rng* random) { return static_cast<std::byte>(random->Below(256)); }

// One of four kinds, in heap memory of exactly its length, so that a sanitizer finds a read past
// it.
std::vector<std::byte> HostilePayload(std::span<const std::byte> valid, Rng* random) {
  std::vector<std::byte> payload(valid.begin(), valid.end());
  switch (random->Below(4)) {
    case 0:
      payload.resize(random->Below(valid.size()));
      break;
    case 1:
      payload.resize(valid.size() + 1 + random->Below(100));
      break;
    case 2:
      for (std::byte& byte : payload) byte = RandomByte(random);
      break;
    default:
      for (uint64_t i = 0; i <= random->Below(4); ++i) {
        payload[random->Below(payload.size())] = RandomByte(random);
      }
  }
  return payload;
}

}  // namespace

std::vector<float> NormalGradient(int64_t elements, uint64_t seed) {
  Rng random(RngKey(seed).With(kTestStream));
  std::vector<float> gradient(elements);
  for (float& g : gradient) g = random.Normal();
  return gradient;
}

GradientShape FilterShape(int64_t rows, int64_t columns) {
  return {.kind = ParameterKind::kConvolutionWeight, .rows = rows, .columns = columns};
}

GradientShape VectorShape(int64_t elements) { return {.columns = elements}; }

std::vector<std::byte> Encoded(const Codec& codec, const GradientShape& shape,
                               const EncodeContext& context, std::span<const float> gradient) {
  const EncodeContext of_shape = context.WithShape(shape);
  // A byte that is not written is not right by chance.
  std::vector<std::byte> payload(codec.PayloadBytes(of_shape), std::byte{0xa5});
  codec.Encode(of_shape, gradient, payload);
  return payload;
}

std::vector<float> Decoded(const Codec& codec, const GradientShape& shape,
                           const EncodeContext& context, std::span<const std::byte> payload) {
  std::vector<float> sum(shape.elements());
  const Status status = codec.DecodeAdd(context.WithShape(shape), payload, 1, sum);
  RT_CHECK(status.ok(), status.ToString());
  return sum;
}

Matrix Vectors(std::span<const float> from, int64_t r) {
  Matrix vectors(r);
  const size_t n = from.size() / r;
  for (int64_t c = 0; c < r; ++c) vectors[c].assign(&from[c * n], &from[c * n] + n);
  return vectors;
}

double Dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double RelativeError(std::span<const float> a, std::span<const float> b) {
  std::vector<double> difference, whole(b.begin(), b.end());
  for (size_t i = 0; i < a.size(); ++i) difference.push_back(static_cast<double>(a[i]) - b[i]);
  return Norm(difference) / Norm(whole);
}

Feedback SendRepeatedly(const Codec& codec, const GradientShape& shape,
                        std::span<const float> gradient, int steps, bool keep_residual) {
  std::vector<float> residual(gradient.size());
  std::vector<double> arrived(gradient.size()), missing, lost, whole;
  for (int step = 0; step < steps; ++step) {
    const EncodeContext context{.step = static_cast<uint64_t>(step)};
    if (!keep_residual) std::fill(residual.begin(), residual.end(), 0.0f);
    for (size_t i = 0; i < residual.size(); ++i) residual[i] += gradient[i];
    const auto payload = Encoded(codec, shape, context, residual);
    const auto decoded = Decoded(codec, shape, context, payload);
    for (size_t i = 0; i < residual.size(); ++i) arrived[i] += decoded[i];
    RT_CHECK(codec.DecodeAdd(context.WithShape(shape), payload, -1, residual).ok(),
             "its own payload");
  }
  for (size_t i = 0; i < residual.size(); ++i) {
    whole.push_back(steps * static_cast<double>(gradient[i]));
    missing.push_back(whole[i] - arrived[i]);
    lost.push_back(missing[i] - residual[i]);
  }
  return {.error = Norm(missing) / Norm(whole), .unaccounted = Norm(lost) / Norm(whole)};
}

std::vector<std::vector<float>> ReduceSketches(const std::vector<std::unique_ptr<Sketch>>& ranks,
                                               const EncodeContext& context,
                                               const std::vector<std::vector<float>>& gradients) {
  for (int round = 0; round < ranks[0]->rounds(); ++round) {
    std::vector<float> sum(ranks[0]->Floats(round));
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<float> share(sum.size(), NAN);
      EncodeContext of_rank = context;
      of_rank.rank = static_cast<uint32_t>(rank);
      ranks[rank]->Pack(round, of_rank, gradients[rank], share);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += share[i];
    }
    for (const auto& rank : ranks) rank->Take(round, context, sum);
  }
  std::vector<std::vector<float>> unpacked;
  for (const auto& rank : ranks) {
    unpacked.emplace_back(gradients[0].size(), NAN);
    rank->Unpack(context, unpacked.back());
  }
  return unpacked;
}

int TryHostilePayloads(const Codec& codec, const GradientShape& shape,
                       const EncodeContext& context) {
  constexpr size_t kGuard = 64;
  Rng random(RngKey(17).With(kTestStream));
  const auto valid = Encoded(codec, shape, context, NormalGradient(shape.elements(), 3));
  std::vector<float> memory(shape.elements() + 2 * kGuard, 7.0f);
  const auto sum = std::span(memory).subspan(kGuard, shape.elements());
  int refused = 0;
  for (int i = 0; i < kHostilePayloads; ++i) {
    const auto payload = HostilePayload(valid, &random);
    const Status status = codec.DecodeAdd(context.WithShape(shape), payload, 1, sum);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), StatusCode::kDataLoss);
      ++refused;
    } else {
      EXPECT_EQ(payload.size(), valid.size());
    }
  }
  const auto guards = {std::span(memory).first(kGuard), std::span(memory).last(kGuard)};
  for (const auto& guard : guards) {
    EXPECT_TRUE(std::all_of(guard.begin(), guard.end(), [](float x) { return x == 7; }));
  }
  return refused;
}

}  // namespace ringtail
