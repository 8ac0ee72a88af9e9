// What becomes of the gradients of a run: the choice for each layer, and what one rank alone does.
#include "apps/trainer/update/gradient_compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/apps/trainer/thread_world.h"
#include "tests/testing/parse_config.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

CompressionConfig Config(const std::string& text) { return ParseConfig<CompressionConfig>(text); }

std::unique_ptr<ParameterArena> TwoLayersOfOneShape() {
  return std::move(*ParameterArena::Create(
      {{.name = "a", .shape = {64, 64, 3, 3}, .kind = ParameterKind::kConvolutionWeight},
       {.name = "b", .shape = {64, 64, 3, 3}, .kind = ParameterKind::kConvolutionWeight}},
      {}));
}

// The description by rank 0 of two ranks on a slow network.
std::string DescriptionOfTwoRanks(const CompressionConfig& config, bool per_rank = false) {
  const LinkModel slow = {.latency_s = 1e-4, .seconds_per_byte = 1e-5};
  std::string description;
  OnTrainingRanks(2,
                  [&](TrainingWorld* world) {
                    const auto arena = TwoLayersOfOneShape();
                    const auto compression = GradientCompression::Create(
                        world, arena.get(), config, {.per_rank = per_rank}, {});
                    ASSERT_TRUE(compression.ok()) << compression.status().message();
                    if (world->leads()) description = (*compression)->description();
                  },
                  {.within_host = slow, .between_hosts = slow});
  return description;
}

// A density of 1 sends a place with every value: twice the bytes, at any speed.
TEST(GradientCompression, LayersOfOneShapeAreJudgedByTheirOwnScheme) {
  const std::string all = "scheme { top_k { density: 1 } } ";
  const std::string few = " rule { name: 'a' scheme { top_k { density: 0.001 } } }";
  EXPECT_THAT(DescriptionOfTwoRanks(Config(all)), HasSubstr("no gradient is compressed"));
  EXPECT_THAT(DescriptionOfTwoRanks(Config(all + few)), HasSubstr("top_k for 1 of 2 gradients"));
  EXPECT_THAT(DescriptionOfTwoRanks(Config("scheme { top_k { density: 0.001 } } rule { name: 'a' "
                                           "scheme { top_k { density: 1 } } }")),
              HasSubstr("top_k for 1 of 2 gradients"));
}

// Gradients are sent in every step, differences in every round.
TEST(GradientCompression, SaysWhatItCountsBy) {
  const CompressionConfig config = Config("scheme { one_bit {} } fall_back: false");
  EXPECT_THAT(DescriptionOfTwoRanks(config), EndsWith(" MB to each rank and step"));
  EXPECT_THAT(DescriptionOfTwoRanks(config, /*per_rank=*/true),
              EndsWith(" MB to each rank and round"));
}

TEST(GradientCompression, ReadingsNameTheStepOrTheRound) {
  for (const bool per_rank : {false, true}) {
    testing::internal::CaptureStderr();
    OnTrainingRanks(2, [&](TrainingWorld* world) {
      const auto arena = TwoLayersOfOneShape();
      const std::vector<GradientBucket> buckets = MakeGradientBuckets(arena->parameters(), {});
      const auto compression = GradientCompression::Create(
          world, arena.get(), Config("scheme { one_bit {} } fall_back: false guard_every_steps: 1"),
          {.buckets = buckets, .per_rank = per_rank}, {});
      ASSERT_TRUE(compression.ok()) << compression.status().message();
      std::ranges::fill(arena->grads(), 1.0F);
      (*compression)->BeginStep(0, 0, 1);
      ASSERT_TRUE(world
                      ->Run([&](Communicator* ranks) {
                        return ReduceBuckets(ranks, *arena, buckets, (*compression)->reducer());
                      })
                      .ok());
      (*compression)->EndStep(1);
    });
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr(per_rank ? " round 1: a compressed and uncompressed: cosine"
                                   : " step 1: a compressed and uncompressed: cosine"));
  }
}

// The space that is reserved before the first step is what the parts then take, except for their
// headers.
TEST(GradientCompression, KnowsWhatItsPartsWillTake) {
  constexpr int kRanks = 3, kMostHeader = 4096;
  const TempDir dir;
  const RunLock lock = RunLock::Acquire(dir.File("run")).value();
  const CheckpointDirectory directory = CheckpointDirectory::Open(lock).value();
  OnTrainingRanks(kRanks, [&](TrainingWorld* world) {
    const auto arena = TwoLayersOfOneShape();
    const CheckpointDirectory* const own = world->leads() ? &directory : nullptr;
    const auto compression = GradientCompression::Create(
        world, arena.get(), Config("scheme { one_bit {} } fall_back: false route: GATHER"),
        {.directory = own}, {});
    ASSERT_TRUE(compression.ok()) << compression.status().message();
    const auto written = (*compression)->WriteParts(1, own);
    ASSERT_TRUE(written.ok() && written->status.ok()) << written->status.message();
    const std::vector<int64_t>& known = (*compression)->part_bytes();
    ASSERT_EQ(known.size(), kRanks);
    for (int part = 0; part < kRanks; ++part) {
      EXPECT_GT(known[part], 0);
      EXPECT_GE(written->parts->ranks[part].bytes, known[part]);
      EXPECT_LT(written->parts->ranks[part].bytes, known[part] + kMostHeader);
    }
  });
}

// A gradient that overflows on one rank while it waits is in no sum yet. A checkpoint of it could
// not be resumed.
TEST(GradientCompression, NoCheckpointOfAGradientThatOverflowsWhileItWaits) {
  constexpr int64_t kDue = 0, kWaits = 1;  // steps, of parameter 0 (LayerScheme::IsDue)
  const TempDir dir;
  const RunLock lock = RunLock::Acquire(dir.File("run")).value();
  const CheckpointDirectory directory = CheckpointDirectory::Open(lock).value();
  OnTrainingRanks(2, [&](TrainingWorld* world) {
    const auto arena = TwoLayersOfOneShape();
    const std::vector<GradientBucket> buckets = MakeGradientBuckets(arena->parameters(), {});
    const CheckpointDirectory* const own = world->leads() ? &directory : nullptr;
    const auto compression = GradientCompression::Create(
        world, arena.get(),
        Config("rule { name: 'a' scheme { linear8 {} } every_steps: 2 } fall_back: false"),
        {.buckets = buckets, .directory = own}, {});
    ASSERT_TRUE(compression.ok()) << compression.status().message();
    const auto reduce = [&](int64_t step, float gradient) {
      std::ranges::fill(arena->grads(), 1.0F);
      arena->parameters()[0].grad()[0] = gradient;
      (*compression)->BeginStep(step, 0, 1);
      ASSERT_TRUE(world
                      ->Run([&](Communicator* ranks) {
                        return ReduceBuckets(ranks, *arena, buckets, (*compression)->reducer());
                      })
                      .ok());
      (*compression)->EndStep(step);
    };
    reduce(kDue, 1);
    auto written = (*compression)->WriteParts(kDue, own);
    ASSERT_TRUE(written.ok() && written->status.ok()) << written->status.message();
    reduce(kWaits, world->leads() ? 1 : std::numeric_limits<float>::infinity());
    EXPECT_THAT(arena->parameters()[0].grad(), testing::Each(0.0F));  // it waits
    written = (*compression)->WriteParts(kWaits, own);
    ASSERT_TRUE(written.ok());
    EXPECT_THAT(written->status.message(), AllOf(HasSubstr("rank 1: 'compression.unsent.1'"),
                                                 HasSubstr("has a NaN or infinity")));
    EXPECT_FALSE(written->parts.has_value());
  });
}

// A world of one rank that compresses.
struct Alone {
  std::unique_ptr<GradientCompression> Create(const std::string& config) {
    auto made =
        GradientCompression::Create(&world, arena.get(), Config(config), {.buckets = buckets}, {});
    RT_CHECK(made.ok(), made.status().message());
    return *std::move(made);
  }
  Status Reduce(GradientCompression* compression) {
    return world.Run([&](Communicator* ranks) {
      return ReduceBuckets(ranks, *arena, buckets, compression->reducer());
    });
  }

  TrainingWorld world;
  std::unique_ptr<ParameterArena> arena = TwoLayersOfOneShape();
  std::vector<GradientBucket> buckets = MakeGradientBuckets(arena->parameters(), {});
};

TEST(GradientCompression, OneRankNeedsItOnlyForMomentum) {
  Alone alone;
  EXPECT_EQ(alone.Create("scheme { two_bit {} }"), nullptr);
  const auto dgc = alone.Create("scheme { dgc { momentum: 0.5 } }");
  ASSERT_NE(dgc, nullptr);
  for (const float expected : {1.0F, 1.5F, 1.75F}) {
    std::ranges::fill(alone.arena->grads(), 1.0F);
    dgc->BeginStep(0, 0, 1);
    ASSERT_TRUE(alone.Reduce(dgc.get()).ok());
    for (const Parameter& p : alone.arena->parameters())
      EXPECT_THAT(p.grad(), testing::Each(expected));
  }
}

// What a rank has not sent of "b", which trains, when "a" is frozen and then is not; and the routes
// of both, which a checkpoint has already while "a" is frozen.
TEST(GradientCompression, WhatWasNotSentAndRoutesOutliveTheThaw) {
  const LinkModel slow = {.latency_s = 1e-4, .seconds_per_byte = 1e-5};
  const CompressionConfig config = Config(
      "scheme { top_k { density: 0.001 } } rule { name: 'a' "
      "scheme { power_sgd {} } }");
  const auto frozen_arena = [] {
    const auto all = TwoLayersOfOneShape();
    return std::move(*ParameterArena::Create({all->parameters()[1].spec}, {},
                                             {.parameters = {all->parameters()[0].spec}}));
  };
  OnTrainingRanks(
      2,
      [&](TrainingWorld* world) {
        HandOver handed;
        std::vector<float> unsent;
        SavedRoutes routes;
        {
          const auto arena = frozen_arena();
          const std::vector<GradientBucket> buckets = MakeGradientBuckets(arena->replicated(), {});
          const auto made = GradientCompression::Create(world, arena.get(), config,
                                                        {.buckets = buckets, .thaws = true}, {});
          ASSERT_TRUE(made.ok()) << made.status().message();
          for (size_t i = 0; i < arena->grads().size(); ++i) {
            arena->grads()[i] =
                static_cast<float>(i % 1000) * static_cast<float>(world->rank() + 1);
          }
          (*made)->BeginStep(0, 0, 1);
          ASSERT_TRUE(world
                          ->Run([&](Communicator* ranks) {
                            return ReduceBuckets(ranks, *arena, buckets, (*made)->reducer());
                          })
                          .ok());
          (*made)->EndStep(1);
          routes = ParseRoutes(RoutesText((*made)->routes())).value();
          EXPECT_EQ(routes.letters.size(), 1U);
          EXPECT_EQ(routes.frozen.size(), 1U);
          (*made)->HandOverTo(&handed);
          unsent = handed.kept.at("unsent.b");
          EXPECT_THAT(unsent, testing::Contains(testing::Ne(0.0F)));
          // As a run that is resumed before the thaw.
          const auto resumed = GradientCompression::Create(
              world, arena.get(), config, {.buckets = buckets, .thaws = true}, {.routes = routes});
          ASSERT_TRUE(resumed.ok()) << resumed.status().message();
          EXPECT_EQ(RoutesText((*resumed)->routes()), RoutesText(routes));
        }
        const auto arena = TwoLayersOfOneShape();
        const std::vector<GradientBucket> buckets = MakeGradientBuckets(arena->replicated(), {});
        const auto made = GradientCompression::Create(world, arena.get(), config,
                                                      {.buckets = buckets}, {.in_memory = &handed});
        ASSERT_TRUE(made.ok()) << made.status().message();
        EXPECT_EQ((*made)->routes().letters, routes.frozen + routes.letters);
        EXPECT_EQ((*made)->routes().frozen, "");
        HandOver after;
        (*made)->HandOverTo(&after);
        EXPECT_EQ(after.kept.at("unsent.b"), unsent);
        EXPECT_THAT(after.kept.at("unsent.a"), testing::Each(0.0F));
      },
      {.within_host = slow, .between_hosts = slow});
}

// train.on_nan: SKIP drops a step and, with it, the residuals: they may hold a NaN.
TEST(GradientCompression, ResidualsAreForgottenWithASkippedStep) {
  Alone alone;
  const auto dgc = alone.Create("scheme { dgc { momentum: 0.5 } }");
  const auto reduce = [&](int64_t step, float gradient) {
    std::ranges::fill(alone.arena->grads(), gradient);
    dgc->BeginStep(step, 0, 1);
    ASSERT_TRUE(alone.Reduce(dgc.get()).ok());
  };
  reduce(0, 1);
  reduce(1, std::numeric_limits<float>::quiet_NaN());
  dgc->Forget();
  reduce(2, 1);
  for (const Parameter& p : alone.arena->parameters()) EXPECT_THAT(p.grad(), testing::Each(1.0F));
}

}  // namespace
}  // namespace ringtail
