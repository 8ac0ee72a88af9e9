// Buckets of gradients, compressed layer by layer: the same bits on every rank, and nothing is
// lost.
#include "dist/compression/compressed_reducer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "tests/dist/compression/compressing_rank.h"

namespace ringtail {
namespace {

using testing::Each;

constexpr int kSteps = 12;

// By rank.
using Gradients = std::vector<std::vector<float>>;

struct Case {
  std::string name, scheme;
  double noise = 0;  // may be missing; 0: nothing, because residuals are sent later
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::vector<Case> Cases() {
  return {{"bf16", "bf16 {}", 0.05},
          {"fp16", "fp16 {}", 0.05},
          {"linear8", "linear8 {}"},
          {"qsgd", "qsgd {}", 0.5},
          {"terngrad", "terngrad {}", 8},
          {"one_bit", "one_bit {}"},
          {"sign", "sign {}"},
          {"two_bit", "two_bit {}"},
          {"two_bit_fixed", "two_bit { threshold: 0.2 }"},
          {"top_k", "top_k { density: 0.05 }"},
          {"top_k_of_sums", "top_k { density: 0.05 sum_density: 0.2 }"},
          {"top_k_f16", "top_k { density: 0.05 values: F16 }"},
          {"top_k_bf16", "top_k { density: 0.05 values: BF16 }"},
          {"random_k", "random_k { density: 0.1 }"},
          {"power_sgd", "power_sgd { rank: 1 }"},
          {"important_filters", "important_filters { theta: 300 }"},
          {"hylo", "hylo { convolution { theta: 300 } }"},
          {"top_k_levels4", "top_k { density: 0.05 values: LEVELS4 }"}};
}

// Without momentum, which no sum accounts for.
std::vector<Case> DgcCases() {
  const std::string dgc = "dgc { density: 0.05 warm_up: false momentum: 0 ";
  return {
      {"dgc", dgc + "}"}, {"dgc_f16", dgc + "values: F16 }"}, {"dgc_bf16", dgc + "values: BF16 }"}};
}

std::string Text(const Case& c, const std::string& more = "") {
  return fmt::format("scheme {{ {} }} min_elements: 100 {}", c.scheme, more);
}

// Sums over all steps of what went in and came out, and the residual at the end, by element.
struct Account {
  std::vector<double> in, out, residual;

  explicit Account(size_t elements) : in(elements), out(elements), residual(elements) {}
  // The largest difference, in units of the largest element of `in`.
  double Missing() const {
    double missing = 0, largest = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      missing = std::max(missing, std::abs(in[i] - out[i] - residual[i]));
      largest = std::max(largest, std::abs(in[i]));
    }
    return missing / largest;
  }
};

Account Train(int size, const std::string& config, bool shard) {
  const World world = MakeSharedMemoryWorld(size);
  std::mutex mutex;
  Account account(LayersOfEachKind()->grads().size());
  Gradients last(size);
  OnEveryRank(size, [&](int rank) {
    CompressingRank self(world[rank].get(), config, shard);
    for (int step = 0; step < kSteps; ++step) {
      const Status status = self.Step(step);
      ASSERT_TRUE(status.ok()) << status.message();
      const std::lock_guard lock(mutex);
      const auto grads = self.arena->grads();
      last[rank].insert(last[rank].end(), grads.begin(), grads.end());
      if (rank > 0) continue;
      for (const Parameter& p : self.arena->parameters()) {
        for (int64_t i = p.offset; i < p.offset + p.elements; ++i) {
          account.in[i] += self.SumOfGradients(step, i);
          account.out[i] += grads[i];
        }
      }
    }
    const std::lock_guard lock(mutex);
    for (const auto& block : self.reducer->state()) {
      if (block.name != StateBlock::kResidual && block.name != StateBlock::kResidualOfSums) {
        continue;
      }
      for (size_t i = 0; i < block.values.size(); ++i) account.residual[i] += block.values[i];
    }
  });
  EXPECT_THAT(last, Each(last[0])) << "ranks have different bits";
  return account;
}

class SchemeTest : public testing::TestWithParam<Case> {};

TEST_P(SchemeTest, NothingIsLostAndAllRanksHaveTheSameBits) {
  for (const int size : {2, 3, 4}) {
    for (const bool shard : {false, true}) {
      const double missing = Train(size, Text(GetParam()), shard).Missing();
      SCOPED_TRACE(fmt::format("{} ranks, {}", size, shard ? "sharded" : "gathered"));
      EXPECT_LT(missing, std::max(GetParam().noise, 1e-5));
    }
  }
}

class KeepingSchemeTest : public SchemeTest {};

TEST_P(KeepingSchemeTest, WithoutErrorFeedbackMuchIsLost) {
  const double missing = Train(2, Text(GetParam(), "error_feedback: false"), false).Missing();
  EXPECT_GT(missing, 1e-3);
}

std::vector<Case> KeepingCases() {
  std::vector<Case> cases = Cases();
  std::erase_if(cases, [](const Case& c) { return c.noise > 0; });
  return cases;
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(All, SchemeTest, testing::ValuesIn(Cases()), kName);
INSTANTIATE_TEST_SUITE_P(Dgc, SchemeTest, testing::ValuesIn(DgcCases()), kName);
INSTANTIATE_TEST_SUITE_P(All, KeepingSchemeTest, testing::ValuesIn(KeepingCases()), kName);

// Whatever the scheme and the memory; biases and batch norms, too.
TEST(CompressedReducer, WhatWaitsArrivesLater) {
  for (const char* scheme : {"linear8 {}", "bf16 {}", "two_bit {}", "top_k { density: 0.05 }",
                             "random_k {}", "dgc { warm_up: false momentum: 0 }"}) {
    const std::string rule = fmt::format("scheme {{ {} }} every_steps: 3 }}", scheme);
    const std::string config =
        fmt::format("min_elements: 0 rule {{ {} rule {{ kind: VECTOR {}", rule, rule);
    for (const bool shard : {false, true}) {
      EXPECT_LT(Train(3, config, shard).Missing(), 1e-5) << scheme << ", sharded " << shard;
    }
  }
}

// Parameter i in steps whose number and i add up to a multiple of 3; zeros in the others.
TEST(CompressedReducer, LayersThatWaitTakeTurns) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    CompressingRank self(world[rank].get(),
                         "min_elements: 0 rule { scheme { linear8 {} } every_steps: 3 }", true);
    const std::span<const Parameter> parameters = self.arena->parameters();
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_TRUE(self.Step(step).ok());
      for (size_t i = 0; i < parameters.size(); ++i) {
        const bool vector = parameters[i].spec.kind == ParameterKind::kVector;
        const bool due = vector || (static_cast<size_t>(step) + i) % 3 == 0;
        const auto sum = parameters[i].grad();
        EXPECT_EQ(std::ranges::any_of(sum, [](float g) { return g != 0; }), due)
            << parameters[i].spec.name << ", step " << step;
      }
      EXPECT_TRUE(self.reducer->TakeReadings().empty()) << "of sums of several steps";
    }
  });
}

TEST(CompressedReducer, SmallLayersAndVectorsTravelDense) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    CompressingRank self(world[rank].get(), "scheme { one_bit {} } min_elements: 400", false);
    ASSERT_TRUE(self.Step(3).ok());
    for (const Parameter& p : self.arena->parameters()) {
      const bool dense = p.spec.kind == ParameterKind::kVector || p.elements < 400;
      int different = 0;
      for (int64_t i = 0; i < p.elements; ++i) {
        different += p.grad()[i] == self.SumOfGradients(3, p.offset + i) ? 0 : 1;
      }
      EXPECT_EQ(different == 0, dense) << p.spec.name;
    }
  });
}

TEST(CompressedReducer, RulesGiveLayersSchemesOfTheirOwn) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    const std::string config =
        "scheme { sign {} } min_elements: 0"
        " rule { name: \"conv1.*\" scheme { dense {} } }"
        " rule { kind: LINEAR scheme { top_k { density: 1 } } }";
    CompressingRank self(world[rank].get(), config, false);
    std::map<std::string, std::string> schemes;
    for (size_t i = 0; i < self.arena->parameters().size(); ++i) {
      schemes[self.arena->parameters()[i].spec.name] = self.reducer->layers()[i].scheme.name;
    }
    EXPECT_EQ(schemes, (std::map<std::string, std::string>{{"fc.weight", "top_k"},
                                                           {"fc.bias", "dense"},
                                                           {"conv2.weight", "sign"},
                                                           {"bn.weight", "dense"},
                                                           {"conv1.weight", "dense"}}));
    ASSERT_TRUE(self.Step(0).ok());
    const Parameter& fc = *self.arena->FindParameter("fc.weight");
    for (int64_t i = 0; i < fc.elements; ++i) {
      ASSERT_EQ(fc.grad()[i], self.SumOfGradients(0, fc.offset + i));
    }
  });
}

// If it sends everything at once, Deep Gradient Compression is SGD without momentum for large
// layers (their momentum is masked; Nesterov's looks ahead by m g), and momentum SGD for the
// others.
class DgcTest : public testing::TestWithParam<bool> {};

TEST_P(DgcTest, GivesDenseLayersTheirMomentum) {
  const bool nesterov = GetParam();
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    const std::string config = fmt::format(
        "scheme {{ dgc {{ density: 1 momentum: 0.5 nesterov: {} }} }} min_elements: 100", nesterov);
    CompressingRank self(world[rank].get(), config, false);
    const Parameter &large = *self.arena->FindParameter("conv2.weight"),
                    &small = *self.arena->FindParameter("fc.bias");
    std::vector<float> velocity(small.elements);
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(self.Step(step).ok());
      for (int64_t i = 0; i < small.elements; ++i) {
        const float gradient = self.SumOfGradients(step, small.offset + i);
        velocity[i] = 0.5F * velocity[i] + gradient;
        ASSERT_NEAR(small.grad()[i], nesterov ? gradient + 0.5F * velocity[i] : velocity[i], 1e-6);
      }
      for (int64_t i = 0; i < large.elements; ++i) {
        const float gradient = self.SumOfGradients(step, large.offset + i);
        ASSERT_NEAR(large.grad()[i], nesterov ? 1.5F * gradient : gradient, 1e-6);
      }
    }
  });
}

// The optimizer then has no momentum, whichever layers are compressed.
TEST_P(DgcTest, GivesAllLayersTheirMomentumIfItSendsNone) {
  const bool nesterov = GetParam();
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    const std::string config = fmt::format(
        "scheme {{ dgc {{ momentum: 0.5 nesterov: {} }} }} min_elements: 1000000", nesterov);
    CompressingRank self(world[rank].get(), config, false);
    std::vector<float> velocity(self.arena->grads().size());
    for (int step = 0; step < 5; ++step) {
      ASSERT_TRUE(self.Step(step).ok());
      for (const Parameter& p : self.arena->parameters()) {
        for (int64_t i = p.offset; i < p.offset + p.elements; ++i) {
          const float gradient = self.SumOfGradients(step, i);
          velocity[i] = 0.5F * velocity[i] + gradient;
          ASSERT_NEAR(p.grad()[i - p.offset],
                      nesterov ? gradient + 0.5F * velocity[i] : velocity[i], 1e-6);
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, DgcTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "nesterov" : "classic");
});

// Gradients that fill fp16's range with one batch, in the first and in the second encoding.
TEST(CompressedReducer, AGrownBatchLosesNoMoreThanOneBatch) {
  for (const bool shard : {false, true}) {
    const World world = MakeSharedMemoryWorld(2);
    OnEveryRank(2, [&](int rank) {
      CompressingRank self(world[rank].get(), "scheme { fp16 {} } min_elements: 100", shard);
      constexpr float kSize = 3e4F;
      ASSERT_TRUE(self.Step(0, 1, kSize).ok());
      std::vector<float> expected(self.arena->grads().begin(), self.arena->grads().end());
      for (const Parameter& p : self.arena->parameters()) {
        for (int64_t i = p.offset; i < p.offset + p.elements; ++i) {
          const float exact = kSize * self.SumOfGradients(0, i);
          ASSERT_NEAR(expected[i], exact, 0x1p-9 * std::abs(exact) + 0x1p-9 * kSize) << p.spec.name;
          expected[i] *= 16;
        }
      }
      ASSERT_TRUE(self.Step(0, 16, kSize).ok());
      EXPECT_THAT(self.arena->grads(), testing::ElementsAreArray(expected));
    });
  }
}

// A fixed threshold is for one rank's gradient; a sum of four must be able to send four times as
// much.
TEST(CompressedReducer, AFixedThresholdLetsTheSumsOfAllRanksThrough) {
  constexpr int kRanks = 4, kManySteps = 200;
  const World world = MakeSharedMemoryWorld(kRanks);
  OnEveryRank(kRanks, [&](int rank) {
    CompressingRank self(world[rank].get(), "scheme { two_bit { threshold: 1 } } min_elements: 100",
                         /*shard=*/true);
    const Parameter& fc = *self.arena->FindParameter("fc.weight");
    double arrived = 0;
    for (int step = 0; step < kManySteps; ++step) {
      std::ranges::fill(self.arena->grads(), 0.9F);
      self.reducer->BeginStep(step, step);
      ASSERT_TRUE(
          ReduceBuckets(self.communicator.get(), *self.arena, self.buckets, self.reducer.get())
              .ok());
      arrived += fc.grad()[0];
    }
    const double sent = 0.9 * kRanks * kManySteps;
    EXPECT_NEAR(arrived, sent, 2 * kRanks) << "the residual is that of a step or two";
  });
}

TEST(CompressedReducer, NothingIsCompressedInTheDenseEpochs) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    CompressingRank self(world[rank].get(), "scheme { one_bit {} } min_elements: 0 dense_epochs: 2",
                         false);
    for (const int epoch : {0, 1, 2}) {
      ASSERT_TRUE(self.Step(epoch).ok());
      const Parameter& p = *self.arena->FindParameter("conv2.weight");
      int different = 0;
      for (int64_t i = 0; i < p.elements; ++i) {
        different += p.grad()[i] == self.SumOfGradients(epoch, p.offset + i) ? 0 : 1;
      }
      EXPECT_EQ(different > 0, epoch == 2) << "epoch " << epoch;
    }
  });
}

TEST(CompressedReducer, TheGuardIgnoresGradientsThatAreZero) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    CompressingRank self(world[rank].get(), "scheme { two_bit {} } min_elements: 100", false);
    for (int step = 0; step < 2; ++step) {  // one bucket each
      ASSERT_TRUE(self.Step(step, 1, /*size=*/0).ok());
      EXPECT_TRUE(self.reducer->TakeReadings().empty());
    }
  });
}

TEST(CompressedReducer, TheGuardMeasuresTheDirection) {
  const World world = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    const auto cosine = [&](CompressingRank* self) {
      double least = 1;
      for (int step = 0; step < 2; ++step) {  // one bucket each
        EXPECT_TRUE(self->Step(step).ok());
        const auto readings = self->reducer->TakeReadings();
        EXPECT_FALSE(readings.empty());
        for (const DirectionReading& r : readings) least = std::min(least, r.cosine);
      }
      return least;
    };
    CompressingRank exact(world[rank].get(), "scheme { bf16 {} } min_elements: 100", false);
    EXPECT_GT(cosine(&exact), 0.9999);
  });
  const World other = MakeSharedMemoryWorld(2);
  OnEveryRank(2, [&](int rank) {
    CompressingRank coarse(other[rank].get(),
                           "scheme { top_k { density: 0.001 } } min_elements: 100", false);
    EXPECT_TRUE(coarse.Step(0).ok());
    for (const DirectionReading& r : coarse.reducer->TakeReadings()) {
      EXPECT_LT(r.cosine, 0.7);
      EXPECT_GT(r.residual, 0.5);
    }
  });
}

}  // namespace
}  // namespace ringtail
