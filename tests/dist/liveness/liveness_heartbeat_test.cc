// What a rank tells of itself: dist/liveness/progress.h, step_times.h, heartbeat.h.
#include "dist/liveness/heartbeat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "dist/liveness/step_times.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;

TEST(Progress, EveryCallMovesTheCounter) {
  Progress progress;
  EXPECT_EQ(progress.Read().phase, Phase::kSetUp);
  progress.BeginStep(17);
  progress.Enter(Phase::kForward);
  progress.Tick();
  const Progress::State state = progress.Read();
  EXPECT_EQ(state.phase, Phase::kForward);
  EXPECT_EQ(state.step, 17);
  EXPECT_EQ(state.counter, 3);
}

TEST(Progress, AScopedPhaseGoesBackToTheOneBefore) {
  Progress progress;
  progress.Enter(Phase::kEvaluation);
  {
    const ScopedPhase exchange(&progress, Phase::kExchange);
    EXPECT_EQ(progress.Read().phase, Phase::kExchange);
  }
  EXPECT_EQ(progress.Read().phase, Phase::kEvaluation);
  EXPECT_EQ(progress.Read().counter, 3);
}

TEST(Progress, NoTickIsLostBetweenThreads) {
  Progress progress;
  constexpr int kEach = 20'000;
  {
    const std::jthread ticking([&] {
      for (int i = 0; i < kEach; ++i) progress.Tick();
    });
    for (int i = 0; i < kEach; ++i) {
      progress.Enter(i % 2 == 0 ? Phase::kForward : Phase::kBackward);
    }
  }
  EXPECT_EQ(progress.Read().counter, 2 * kEach);
  EXPECT_EQ(progress.Read().phase, Phase::kBackward);
}

TEST(StepTimes, ToldAreTheMediansOfTheLastTen) {
  StepTimes times;
  EXPECT_EQ(times.Get().step_us, 0);
  times.Record(0.5, 1.0);
  EXPECT_EQ(times.Get().step_us, 1'000'000);
  EXPECT_EQ(times.Get().compute_us, 0) << "one step says little";
  for (int i = 0; i < 9; ++i) times.Record(0.25, 0.75);
  EXPECT_EQ(times.Get().step_us, 750'000);
  EXPECT_EQ(times.Get().compute_us, 250'000);
  for (int i = 0; i < 4; ++i) times.Record(9, 9);
  EXPECT_EQ(times.Get().compute_us, 250'000) << "four of ten are the exception";
  for (int i = 0; i < 6; ++i) times.Record(0.125, 0.25);
  EXPECT_EQ(times.Get().compute_us, 125'000);
}

TEST(StepTimes, AnyDoubleIsATime) {
  StepTimes times;
  const double odd = std::numeric_limits<double>::quiet_NaN();
  for (const double seconds : {odd, -1.0, 0.0}) {
    times.Record(seconds, seconds);
    EXPECT_EQ(times.Get().step_us, 1);
  }
  const double infinite = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 10; ++i) times.Record(infinite, 1e300);
  EXPECT_EQ(times.Get().step_us, uint64_t{1'000'000'000'000});
}

Heartbeat AHeartbeat() {
  return {.sequence = 0x0102030405060708,
          .phase = Phase::kBackward,
          .last = true,
          .step = 17,
          .counter = UINT64_MAX,
          .unchanged_ms = 10'001,
          .step_us = 812'000,
          .compute_us = 240'000,
          .moved = 99,
          .beats = {1, 0x01020304, 3}};
}

TEST(Heartbeat, ComesOutAsItWentIn) {
  const Heartbeat sent = AHeartbeat();
  const StatusOr<Heartbeat> got = DecodeHeartbeat(EncodeHeartbeat(sent));
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ(got->sequence, sent.sequence);
  EXPECT_EQ(got->phase, sent.phase);
  EXPECT_EQ(got->last, sent.last);
  EXPECT_EQ(got->step, sent.step);
  EXPECT_EQ(got->counter, sent.counter);
  EXPECT_EQ(got->unchanged_ms, sent.unchanged_ms);
  EXPECT_EQ(got->step_us, sent.step_us);
  EXPECT_EQ(got->compute_us, sent.compute_us);
  EXPECT_EQ(got->moved, sent.moved);
  EXPECT_EQ(got->beats, sent.beats);
}

TEST(Heartbeat, LiesInLittleEndianOrder) {
  const auto bytes = EncodeHeartbeat(AHeartbeat());
  const unsigned char expected[] = {'R', 'T', 'H', '2', 3, 1, 0,    0,    8, 7,
                                    6,   5,   4,   3,   2, 1, 0x11, 0x00, 0, 0};
  for (size_t i = 0; i < sizeof(expected); ++i) {
    EXPECT_EQ(static_cast<unsigned char>(bytes[i]), expected[i]) << "byte " << i;
  }
}

// One byte of it is wrong.
std::string RefusalOf(size_t at, unsigned char value) {
  auto bytes = EncodeHeartbeat(AHeartbeat());
  bytes[at] = static_cast<std::byte>(value);
  const StatusOr<Heartbeat> got = DecodeHeartbeat(bytes);
  EXPECT_EQ(got.status().code(), StatusCode::kDataLoss);
  return got.status().message();
}

TEST(Heartbeat, WhatNoRankSendsIsRefused) {
  EXPECT_EQ(RefusalOf(0, 'X'), "it begins with 32485458");
  EXPECT_EQ(RefusalOf(4, 9), "phase 9");
  EXPECT_EQ(RefusalOf(5, 2), "unknown flags");
  EXPECT_EQ(RefusalOf(7, 1), "unknown flags");
  for (const size_t time : {32, 40, 48}) EXPECT_THAT(RefusalOf(time + 7, 1), HasSubstr("years"));
  const auto bytes = EncodeHeartbeat(AHeartbeat());
  for (const size_t length : {size_t{0}, HeartbeatBytes(0) - 4, bytes.size() - 1}) {
    EXPECT_FALSE(DecodeHeartbeat(std::span(bytes).first(length)).ok()) << length;
  }
}

}  // namespace
}  // namespace ringtail
