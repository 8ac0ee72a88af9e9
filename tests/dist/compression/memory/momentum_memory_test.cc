#include "dist/compression/memory/momentum_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "dist/compression/codecs/dgc_codec.h"
#include "tests/dist/compression/sparse_gradients.h"

namespace ringtail {
namespace {

constexpr int64_t kElements = 3000;
const GradientShape kShape{.columns = kElements};

// One parameter on one rank, which DGC sends in every step.
struct Sender {
  Sender(const MomentumMemoryOptions& options, const DgcOptions& codec_options)
      : codec(codec_options), memory(options, velocity, residual) {}

  // Returns what arrives.
  std::vector<float> Send(std::span<const float> gradient) {
    const EncodeContext context{.shape = kShape, .step = step++};
    std::vector<std::byte> payload(codec.PayloadBytes(context), std::byte{0xa5});
    memory.Encode(codec, context, gradient, 0, payload);
    return Decoded(codec, kShape, context, payload);
  }

  std::vector<float> velocity = std::vector<float>(kElements);
  std::vector<float> residual = std::vector<float>(kElements);
  DgcCodec codec;
  MomentumMemory memory;
  uint64_t step = 0;
};

const DgcOptions kEverything{.densities = {1}};

// The updates of PyTorch's SGD: v = m v + g; v, or Nesterov's g + m v.
class MomentumSgd {
 public:
  MomentumSgd(float momentum, bool nesterov) : m_(momentum), nesterov_(nesterov) {}
  std::vector<float> Update(std::span<const float> gradient) {
    std::vector<float> update;
    for (size_t i = 0; i < gradient.size(); ++i) {
      v_[i] = m_ * v_[i] + gradient[i];
      update.push_back(nesterov_ ? gradient[i] + m_ * v_[i] : v_[i]);
    }
    return update;
  }

 private:
  float m_;
  bool nesterov_;
  std::vector<float> v_ = std::vector<float>(kElements);
};

TEST(MomentumMemory, SendingEverythingIsMomentumSgd) {
  for (const bool nesterov : {false, true}) {
    Sender sender({.momentum = 0.875f, .nesterov = nesterov, .masking = false}, kEverything);
    MomentumSgd sgd(0.875f, nesterov);
    for (uint64_t step = 0; step < 20; ++step) {
      const auto gradient = NormalGradient(kElements, step);
      const auto sent = sender.Send(gradient), expected = sgd.Update(gradient);
      if (nesterov) {  // the same sum in another order
        EXPECT_LT(RelativeError(sent, expected), 1e-6);
      } else {
        EXPECT_EQ(sent, expected);
      }
    }
  }
}

// What is sent at once leaves no momentum behind.
TEST(MomentumMemory, WithMaskingSendingEverythingIsPlainSgd) {
  Sender sender({.momentum = 0.9f}, kEverything);
  for (uint64_t step = 0; step < 5; ++step) {
    const auto gradient = NormalGradient(kElements, step);
    EXPECT_EQ(sender.Send(gradient), gradient);
  }
}

TEST(MomentumMemory, WhatIsSentWholeKeepsItsMomentum) {
  Sender sender({.momentum = 0.875f}, kEverything);
  MomentumSgd sgd(0.875f, false);
  for (uint64_t step = 0; step < 20; ++step) {
    const auto gradient = NormalGradient(kElements, step);
    sender.memory.Add(gradient);
    const auto residual = sender.memory.residual();
    EXPECT_EQ(std::vector<float>(residual.begin(), residual.end()), sgd.Update(gradient));
    sender.memory.SentAll();
  }
}

// The formulas of the paper in double, given the places that were sent.
TEST(MomentumMemory, FollowsThePaper) {
  for (const bool nesterov : {false, true}) {
    Sender sender({.momentum = 0.9f, .nesterov = nesterov}, {.densities = {0.01}});
    std::vector<double> u(kElements), v(kElements);
    for (uint64_t step = 0; step < 50; ++step) {
      const auto gradient = NormalGradient(kElements, step);
      const auto sent = sender.Send(gradient);
      int64_t places = 0;
      for (int64_t i = 0; i < kElements; ++i) {
        u[i] = nesterov ? 0.9 * (u[i] + gradient[i]) : 0.9 * u[i] + gradient[i];
        v[i] += nesterov ? u[i] + gradient[i] : u[i];
        if (sent[i] == 0) continue;
        ASSERT_NEAR(sent[i], v[i], 1e-4);
        u[i] = v[i] = 0;
        ++places;
      }
      EXPECT_EQ(places, 30);
      for (int64_t i = 0; i < kElements; ++i) {
        ASSERT_NEAR(sender.residual[i], v[i], 1e-4);
        ASSERT_NEAR(sender.velocity[i], u[i], 1e-4);
      }
    }
  }
}

// Without masking, the velocity is that of momentum SGD, and what that applies is sent or kept.
TEST(MomentumMemory, NothingIsLost) {
  Sender sender({.momentum = 0.9f, .masking = false}, {.densities = {0.01}});
  MomentumSgd sgd(0.9f, false);
  std::vector<double> arrived(kElements), expected(kElements);
  double dropped = 0;  // elements that a dropped residual would lose
  for (uint64_t step = 0; step < 100; ++step) {
    const auto gradient = NormalGradient(kElements, step);
    const auto sent = sender.Send(gradient), update = sgd.Update(gradient);
    for (int64_t i = 0; i < kElements; ++i) {
      arrived[i] += sent[i];
      expected[i] += update[i];
    }
  }
  for (int64_t i = 0; i < kElements; ++i) {
    ASSERT_NEAR(arrived[i] + sender.residual[i], expected[i], 1e-3);
    dropped += std::fabs(arrived[i] - expected[i]) > 1e-3 ? 1 : 0;
  }
  EXPECT_GT(dropped, kElements / 2);
}

// A constant gradient: in the end everything arrives in due proportion, although few elements are
// sent at a time; not so if the residual is dropped.
TEST(MomentumMemory, EverythingArrivesInTheEndUnlessTheResidualIsDropped) {
  const auto gradient = NormalGradient(kElements, 1);
  const auto error_of = [&](bool keep) {
    Sender sender({.momentum = 0.5f, .masking = false}, {.densities = {0.05}});
    std::vector<float> arrived(kElements), expected(kElements);
    for (int step = 0; step < 1000; ++step) {
      if (!keep) std::fill(sender.residual.begin(), sender.residual.end(), 0.0f);
      const auto sent = sender.Send(gradient);
      for (int64_t i = 0; i < kElements; ++i) {
        arrived[i] += sent[i];
        expected[i] += 2 * gradient[i];  // 1 / (1 - m)
      }
    }
    return RelativeError(arrived, expected);
  };
  EXPECT_LT(error_of(true), 0.03);
  EXPECT_GT(error_of(false), 0.6);
}

TEST(MomentumMemory, NarrowValuesLeaveTheirRoundingBehind) {
  Sender sender({.momentum = 0}, {.densities = {1}, .values = ValueFormat::kBfloat16});
  const auto gradient = NormalGradient(kElements, 1);
  const auto sent = sender.Send(gradient);
  EXPECT_GT(RelativeError(sent, gradient), 1e-4);
  for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(sent[i] + sender.residual[i], gradient[i]);
}

TEST(MomentumMemory, ClipsTheNormOfALayer) {
  const auto gradient = NormalGradient(kElements, 1);  // its norm is near 55
  double norm = 0;
  for (const float g : gradient) norm += static_cast<double>(g) * g;
  norm = std::sqrt(norm);
  const double limit = MomentumMemory::LocalNorm(20, 4);
  EXPECT_EQ(limit, 10);
  std::vector<float> clipped;
  clipped.reserve(kElements);
  for (const float g : gradient) clipped.push_back(static_cast<float>(g * (limit / norm)));
  EXPECT_LT(RelativeError(Sender({.max_norm = limit}, kEverything).Send(gradient), clipped), 1e-6);
  EXPECT_EQ(Sender({.max_norm = norm * 1.001}, kEverything).Send(gradient), gradient);
}

}  // namespace
}  // namespace ringtail
