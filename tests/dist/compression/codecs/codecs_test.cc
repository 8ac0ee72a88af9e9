// Properties of every codec preset (dist/compression/schemes.h).
#include "dist/compression/schemes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/random.h"
#include "tests/dist/compression/codec_runner.h"

namespace ringtail {
namespace {

constexpr int64_t kSizes[] = {1, 7, 8, 15, 16, 17, 63, 511, 512, 513, 1024, 1025, 2000, 5003};

class CodecTest : public testing::TestWithParam<SchemePreset> {
 protected:
  std::unique_ptr<Codec> codec_ = PresetCodec(GetParam().name, {.samples = 3});
};

TEST_P(CodecTest, AllInstructionSetsGiveTheSameBits) {
  const KernelIsa best = MachineIsas().back();
  for (const int64_t n : kSizes) {
    const Floats gradient = MixedGradient(n, static_cast<uint64_t>(n));
    SetKernelIsaForTest(KernelIsa::kBaseline);
    const Payload payload = Encode(*codec_, gradient);
    const Floats decoded = Decode(*codec_, payload, n, 0.3F);
    for (const KernelIsa isa : MachineIsas()) {
      SetKernelIsaForTest(isa);
      EXPECT_EQ(Encode(*codec_, gradient), payload) << KernelIsaName(isa) << ", " << n;
      const Floats again = Decode(*codec_, payload, n, 0.3F);
      EXPECT_EQ(std::memcmp(again.data(), decoded.data(), decoded.size() * sizeof(float)), 0)
          << KernelIsaName(isa) << ", " << n;
    }
    SetKernelIsaForTest(best);
  }
}

TEST_P(CodecTest, AddsTheScaledGradient) {
  const Floats gradient = GaussianGradient(1300);
  const Payload payload = Encode(*codec_, gradient);
  const Floats decoded = Decode(*codec_, payload, 1300);
  Floats sum(1300, 64);
  const Status status = codec_->DecodeAdd(ContextOf(1300), payload, -0.5F, sum);
  ASSERT_TRUE(status.ok()) << status.ToString();
  bool anything = false;
  for (size_t i = 0; i < sum.size(); ++i) {
    anything = anything || decoded[i] != 0;
    ASSERT_FLOAT_EQ(sum[i], 64 - decoded[i] / 2) << i;
  }
  EXPECT_TRUE(anything);
}

TEST_P(CodecTest, KeepsTheDirection) {
  const Floats gradient = GaussianGradient(5000), decoded = RoundTrip(*codec_, gradient);
  double product = 0, kept = 0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    product += double{gradient[i]} * double{decoded[i]};
    kept += decoded[i] != 0 ? 1 : 0;
  }
  // The k largest of n: their part of the squares is k / n at least.
  const double least = std::min(0.45, std::sqrt(kept / static_cast<double>(gradient.size())));
  EXPECT_GT(product, least * Length(gradient) * Length(decoded));
}

TEST_P(CodecTest, LengthDependsOnTheShapeAlone) {
  EncodeContext other = kContext;
  other.rank = 9;
  other.step = 1000;
  other.parameter = 17;
  for (const int64_t n : kSizes) {
    EXPECT_EQ(codec_->PayloadBytes(ContextOf(n)),
              codec_->PayloadBytes(other.WithShape(VectorOf(n))));
    EXPECT_LE(codec_->PayloadBytes(ContextOf(n)), 4 * n + 8);
  }
}

TEST_P(CodecTest, ShowsWhatIsNotFinite) {
  for (const float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const size_t place : {0U, 600U, 1299U}) {
      Floats gradient = GaussianGradient(1300);
      gradient[place] = bad;
      const Floats decoded = RoundTrip(*codec_, gradient);
      EXPECT_FALSE(std::isfinite(decoded[place])) << bad << " at " << place;
    }
  }
}

// Whatever a codec does, on any instruction set: the bits of the default implementation.
TEST_P(CodecTest, FeedbackIsAdditionEncodingAndSubtraction) {
  const auto same = [](const Floats& a, const Floats& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  };
  const auto run = [&](const GradientShape& shape, const Floats& first, const Floats& second) {
    const EncodeContext context = kContext.WithShape(shape);
    Payload payload(codec_->PayloadBytes(context), std::byte{0xa5}), expected = payload;
    Floats residual(shape.elements()), left(shape.elements());
    for (const Floats* gradient : {&first, &second, &first}) {
      codec_->Codec::EncodeWithFeedback(context, *gradient, left, expected);
      codec_->EncodeWithFeedback(context, *gradient, residual, payload);
      EXPECT_EQ(payload, expected) << shape.rows << " x " << shape.columns;
      EXPECT_TRUE(same(residual, left)) << shape.rows << " x " << shape.columns;
    }
  };
  for (const KernelIsa isa : MachineIsas()) {
    SetKernelIsaForTest(isa);
    for (const int64_t n : kSizes) {
      run(VectorOf(n), MixedGradient(n, 1), MixedGradient(n, 2));
      run(VectorOf(n), Floats(n, -0.0F), Floats(n, 1e-40F));  // a scale of zero
    }
    const GradientShape filters = {ParameterKind::kConvolutionWeight, 24, 333};
    const int64_t n = filters.elements();  // more than fits where codecs work piece by piece
    run(filters, GaussianGradient(n, 1), GaussianGradient(n, 2));
    run(filters, MixedGradient(n, 1), MixedGradient(n, 2));
  }
  // An element that is not finite shows as well.
  Floats bad = GaussianGradient(1300), residual(1300);
  bad[600] = std::nanf("");
  Payload payload(codec_->PayloadBytes(ContextOf(1300)));
  codec_->EncodeWithFeedback(ContextOf(1300), bad, residual, payload);
  EXPECT_FALSE(std::isfinite(Decode(*codec_, payload, 1300)[600]));
}

TEST_P(CodecTest, VisitsWhatItSends) {
  const Floats gradient = GaussianGradient(1300);
  const Payload payload = Encode(*codec_, gradient);
  Floats visited(1300);
  int64_t last = -1;
  codec_->ForEachSent(ContextOf(1300), payload, [&](int64_t place, float value) {
    EXPECT_GT(place, last);
    last = place;
    visited[place] = value;
  });
  EXPECT_GE(last, 0);
  EXPECT_EQ(visited, Decode(*codec_, payload, 1300));
}

TEST_P(CodecTest, SumsRanksInTheirOrder) {
  const Floats a = GaussianGradient(1300, 1), b = GaussianGradient(1300, 2);
  EncodeContext context = kContext;
  context.rank = 0;
  const Payload first = Encode(*codec_, a, context);
  context.rank = 1;
  const Payload second = Encode(*codec_, b, context);
  const std::span<const std::byte> payloads[] = {first, second};
  Floats sum(1300), again(1300);
  ASSERT_TRUE(codec_->DecodeSum(ContextOf(1300), payloads, sum).ok());
  ASSERT_TRUE(codec_->DecodeSum(context.WithShape(VectorOf(1300)), payloads, again).ok());
  EXPECT_EQ(std::memcmp(sum.data(), again.data(), sum.size() * sizeof(float)), 0);
  EXPECT_GT(Length(sum), 0);
  const std::span<const std::byte> short_payloads[] = {first, payloads[1].first(3)};
  const Status status = codec_->DecodeSum(ContextOf(1300), short_payloads, sum);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), testing::StartsWith("rank 1:"));
}

// Random bytes of any length, and payloads with some bytes changed.
TEST_P(CodecTest, NoPayloadDoesHarm) {
  constexpr int64_t kElements = 1101;
  constexpr size_t kGuard = 64;
  const EncodeContext context = ContextOf(kElements);
  const Payload valid = Encode(*codec_, GaussianGradient(kElements));
  Rng rng(RngKey(1).With(kTestStream));
  Floats around(kElements + 2 * kGuard, 1);
  const std::span<float> sum = std::span(around).subspan(kGuard, kElements);
  int refused = 0;
  for (int run = 0; run < 100000; ++run) {
    Payload payload;  // exactly as long as its memory, so that a sanitizer sees a read beyond
    if (run % 2 == 0) {
      payload = valid;
      for (uint64_t flips = 1 + rng.Below(4); flips > 0; --flips) {
        payload[rng.Below(payload.size())] = static_cast<std::byte>(rng.Bits());
      }
      // The first bytes are scales.
      if (run % 4 == 0) payload[rng.Below(8)] = static_cast<std::byte>(rng.Bits());
    } else {
      const uint64_t bytes = run % 4 == 1 ? valid.size() : rng.Below(2 * valid.size());
      payload.resize(bytes);
      for (size_t i = 0; i + 4 <= payload.size(); i += 4) {
        const uint32_t word = rng.Bits();
        std::memcpy(payload.data() + i, &word, sizeof(word));
      }
    }
    payload.shrink_to_fit();
    const Status status = codec_->DecodeAdd(context, payload, 1, sum);
    if (payload.size() != valid.size()) {
      ASSERT_EQ(status.code(), StatusCode::kDataLoss);
    }
    if (!status.ok()) ++refused;
  }
  EXPECT_GT(refused, 20000);
  for (size_t i = 0; i < kGuard; ++i) {
    ASSERT_EQ(around[i], 1);
    ASSERT_EQ(around[around.size() - 1 - i], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, CodecTest, testing::ValuesIn(CodecPresets()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Codecs, AnUnknownNameListsTheKnownOnes) {
  const Status status = FindPreset("tow_bit").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::AllOf(testing::HasSubstr("did you mean 'two_bit'"),
                                               testing::HasSubstr("bf16, fp16")));
}

// Error feedback does harm to a codec that is right on average, and momentum counts as feedback.
TEST(Codecs, UnbiasedOnesHaveNoMemory) {
  for (const Scheme& scheme : Schemes()) {
    for (const SchemePreset& preset : scheme.presets) {
      const LayerScheme layer =
          MakeLayerScheme(*FindPreset(preset.name), {.rows = 9, .columns = 9});
      if (layer.codec == nullptr || !layer.codec->unbiased()) continue;
      EXPECT_EQ(scheme.memory, MemoryKind::kNone) << preset.name;
    }
  }
}

TEST(Codecs, BytesAreThoseOfTheReadme) {
  const GradientShape shape = {ParameterKind::kLinearWeight, 1024, 1024};
  constexpr std::pair<const char*, double> kBitsPerElement[] = {
      {"bf16", 16},         {"fp16", 16},
      {"linear8", 8.03125}, {"linear4", 4.25},
      {"qsgd8", 8.0625},    {"qsgd4", 4.0625},
      {"one_bit", 1.125},   {"terngrad", 2},
      {"two_bit", 2},       {"two_bit_fixed", 2},
      {"sign", 1},          {"sign_vote", 1},
      {"top_k", 0.40564},   {"top_k_thousandth", 0.01495},
      {"dgc", 0.0566}};
  for (const auto& [name, bits] : kBitsPerElement) {
    const int64_t bytes = PresetCodec(name)->PayloadBytes(kContext.WithShape(shape));
    EXPECT_NEAR(static_cast<double>(bytes) * 8 / (1 << 20), bits, 1e-4) << name;
  }
}

}  // namespace
}  // namespace ringtail
