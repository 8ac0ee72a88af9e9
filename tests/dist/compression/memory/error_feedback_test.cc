// What error feedback achieves, and what happens without it.
#include "dist/compression/memory/error_feedback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "dist/compression/codecs/qsgd_codec.h"
#include "dist/compression/schemes.h"
#include "tests/dist/compression/codec_runner.h"

namespace ringtail {
namespace {

constexpr int64_t kElements = 700;

enum class Residual { kKept, kDropped };

// The sum of what is decoded of `gradients`, step by step; `left` is the residual at the end.
Floats SumOfDecoded(const Codec& codec, const std::vector<Floats>& gradients, Residual rule,
                    Floats* left) {
  Floats residual(kElements), sum(kElements);
  ErrorFeedback feedback(residual);
  EncodeContext context = ContextOf(kElements);
  Payload payload(static_cast<size_t>(codec.PayloadBytes(context)));
  for (const Floats& gradient : gradients) {
    if (rule == Residual::kDropped) std::fill(residual.begin(), residual.end(), 0.0F);
    feedback.Encode(codec, context, gradient, 0, payload);
    const Status status = codec.DecodeAdd(context, payload, 1, sum);
    EXPECT_TRUE(status.ok()) << status.ToString();
    ++context.step;
  }
  *left = residual;
  return sum;
}

// Gradients with a direction of their own and noise from step to step, below 0.5.
std::vector<Floats> Gradients(int steps, float size = 0.1F) {
  const Floats mean = GaussianGradient(kElements, 1, size);
  std::vector<Floats> gradients;
  for (int step = 0; step < steps; ++step) {
    gradients.push_back(
        GaussianGradient(kElements, 100 + static_cast<uint64_t>(step), 0.2F * size));
    for (size_t i = 0; i < mean.size(); ++i) gradients.back()[i] += mean[i];
  }
  return gradients;
}

Floats SumOf(const std::vector<Floats>& gradients) {
  Floats sum(kElements);
  for (const Floats& gradient : gradients) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
  }
  return sum;
}

class BiasedCodecTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Codec> codec_ = PresetCodec(GetParam());
};

// decoded[1] + .. + decoded[T] + left = g[1] + .. + g[T], up to the rounding of floats.
TEST_P(BiasedCodecTest, NothingIsLost) {
  const std::vector<Floats> gradients = Gradients(50);
  const Floats sum = SumOf(gradients);
  const auto missing = [&](Residual rule) {
    Floats left, sent = SumOfDecoded(*codec_, gradients, rule, &left);
    for (size_t i = 0; i < sent.size(); ++i) sent[i] += left[i];
    return Distance(sent, sum) / Length(sum);
  };
  EXPECT_LT(missing(Residual::kKept), 2e-6);
  EXPECT_GT(missing(Residual::kDropped), 2e-5) << "the test cannot fail";
}

// The sum lacks only the residual, which does not grow; without feedback, the error does.
TEST_P(BiasedCodecTest, TheSumArrives) {
  const std::vector<Floats> gradients = Gradients(400);
  const Floats sum = SumOf(gradients);
  const auto missing = [&](Residual rule) {
    Floats left;
    return Distance(SumOfDecoded(*codec_, gradients, rule, &left), sum) / Length(sum);
  };
  EXPECT_LT(missing(Residual::kKept), 0.05);
  EXPECT_LT(missing(Residual::kKept), missing(Residual::kDropped) / 4);
}

INSTANTIATE_TEST_SUITE_P(Codecs, BiasedCodecTest,
                         testing::Values("bf16", "fp16", "linear8", "linear4", "two_bit",
                                         "two_bit_fixed", "one_bit", "sign"),
                         [](const auto& info) { return std::string(info.param); });

// Gradient descent on f(x) = mean over ranks r of |x - b[r]|^2 / 2, whose minimum is the mean of b.
// There, each rank's gradient is far from 0 and only their sum is 0: a codec that rounds each by
// itself ends elsewhere. Returns the distance from the minimum.
double DistanceFromMinimum(const Codec& codec, Residual rule) {
  constexpr int kRanks = 4, kSteps = 1000;
  EncodeContext context = ContextOf(kElements);
  std::vector<Floats> targets, residuals(kRanks, Floats(kElements));
  for (uint64_t rank = 0; rank < kRanks; ++rank) {
    targets.push_back(GaussianGradient(kElements, rank));
    for (float& target : targets.back())
      target = std::exp(target);  // skewed: signs alone are not enough
  }
  Floats x(kElements), gradient(kElements), minimum = SumOf(targets);
  for (float& element : minimum) element /= kRanks;
  Payload payload(static_cast<size_t>(codec.PayloadBytes(context)));
  for (int step = 0; step < kSteps; ++step) {
    Floats sum(kElements);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      if (rule == Residual::kDropped) std::ranges::fill(residuals[rank], 0.0F);
      for (size_t i = 0; i < x.size(); ++i) gradient[i] = x[i] - targets[rank][i];
      ErrorFeedback feedback(residuals[rank]);
      feedback.Encode(codec, context, gradient, 0, payload);
      const Status status = codec.DecodeAdd(context, payload, 1, sum);
      EXPECT_TRUE(status.ok()) << status.ToString();
    }
    const float rate = 0.2F / (1 + static_cast<float>(step) / 20);
    for (size_t i = 0; i < x.size(); ++i) x[i] -= rate * sum[i] / kRanks;
    ++context.step;
  }
  return Distance(x, minimum) / Length(minimum);
}

TEST(ErrorFeedback, DescendsToTheMinimum) {
  for (const char* const name : {"one_bit", "sign", "two_bit"}) {
    const std::unique_ptr<Codec> codec = PresetCodec(name);
    EXPECT_LT(DistanceFromMinimum(*codec, Residual::kKept), 0.03) << name;
    EXPECT_GT(DistanceFromMinimum(*codec, Residual::kDropped), 0.15) << name;
  }
}

// Why unbiased codecs get none: the noise is added to the next gradient, which then has more noise.
TEST(ErrorFeedback, GrowsWithoutEndOnNoiseThatIsLargerThanTheGradient) {
  const std::vector<Floats> gradients = Gradients(100);
  Floats left;
  SumOfDecoded(QsgdCodec({.levels = 7}), gradients, Residual::kKept, &left);
  EXPECT_GT(Length(left), 1e3 * Length(gradients[0]));
  SumOfDecoded(*PresetCodec("two_bit"), gradients, Residual::kKept, &left);
  EXPECT_LT(Length(left), 10 * Length(gradients[0]));
}

TEST(ErrorFeedback, GrowsWithoutEndIfAFixedThresholdIsTooSmall) {
  const std::unique_ptr<Codec> codec = PresetCodec("two_bit_fixed");
  for (const float size : {0.1F, 10.0F}) {
    Floats left;
    SumOfDecoded(*codec, Gradients(100, size), Residual::kKept, &left);
    const double steps = Length(left) / Length(Gradients(1, size)[0]);
    EXPECT_TRUE(size < 1 ? steps < 5 : steps > 90) << steps;
  }
}

}  // namespace
}  // namespace ringtail
