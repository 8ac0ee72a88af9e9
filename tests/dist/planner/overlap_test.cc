#include "dist/planner/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "dist/planner/core_share.h"

namespace ringtail {
namespace {

constexpr double kClose = 1e-12;

CommunicationJob Job(double ready, std::vector<CommunicationWork> work) {
  return {.ready = ready, .work = std::move(work)};
}

TEST(CoreShareTest, CommunicationGetsWhatAThreadMoreWouldGet) {
  EXPECT_DOUBLE_EQ(ShareCores(1, 1).compute, 0.5);
  EXPECT_DOUBLE_EQ(ShareCores(1, 1).communication, 0.5);
  EXPECT_DOUBLE_EQ(ShareCores(2, 0.6).compute, 0.7);
  EXPECT_DOUBLE_EQ(ShareCores(2, 0.6).communication, 1);
  EXPECT_DOUBLE_EQ(ShareCores(8, 1).compute, 1 - 8.0 / 9 / 8);
  EXPECT_DOUBLE_EQ(ShareCores(8, 0).compute, 1);
  // A quarter of a core has one compute thread all the same.
  EXPECT_DOUBLE_EQ(ShareCores(0.25, 0.25).compute, 0.5);
  EXPECT_DOUBLE_EQ(ShareCores(0.25, 0.1).communication, 1);
}

// All cores are busy, and none gets more than it asks for.
TEST(CoreShareTest, NothingIsLostAndNothingIsGained) {
  Rng rng(RngKey(1).With(kTestStream));
  for (int i = 0; i < 1000; ++i) {
    const double cores = rng.Uniform(0.1F, 64), wanted = rng.Uniform(0.01F, 1) * cores;
    const CoreShare share = ShareCores(cores, wanted);
    EXPECT_NEAR(share.compute * cores + share.communication * wanted, cores, 1e-9 * cores);
    EXPECT_LE(share.communication, 1);
    EXPECT_GT(share.communication, 0);
    EXPECT_GE(share.compute, 0);
    EXPECT_GE(share.compute + share.communication, 1 - kClose);
  }
}

TEST(OverlapTest, WithoutJobsOnlyTheComputation) {
  const OverlapTimes times = Overlap(3, 2, {});
  EXPECT_EQ(times.compute_end, 3);
  EXPECT_EQ(times.end, 3);
}

// Two cores, two buckets. Bucket 0 is ready at 1 s and sends for 2 s with half a core: backward runs
// at 3/4 of its speed. Bucket 1 is ready when backward ends, at 4 s of computation.
//
//   1 + 2 s beside the wire, in which backward does 1.5 of the 3 s that are left; the other 1.5 s
//   alone: it ends at 4.5. Then bucket 1: encoding for 1 s and sending for 2 s, both exposed.
TEST(OverlapTest, TwoBucketsAsWorkedByHand) {
  const std::vector<CommunicationJob> jobs = {
      Job(1, {CommunicationWork::Collective(2, 1, 2)}),
      Job(4, {CommunicationWork::Coding(1, 2), CommunicationWork::Collective(2, 1, 2)})};
  const OverlapTimes times = Overlap(4, 2, jobs);
  EXPECT_NEAR(times.compute_end, 4.5, kClose);
  EXPECT_NEAR(times.exposed_coding, 1, kClose);
  EXPECT_NEAR(times.exposed_wire, 2, kClose);
  EXPECT_NEAR(times.end, 7.5, kClose);
}

// One core, computation until 2 s. Job 0 is over at 1 s and unlocks 1 s; job 1 then sends until
// 5 s. What is unlocked runs from 2 to 3 s, and for 2 s the core is idle. What the last job unlocks
// comes later.
TEST(OverlapTest, UnlockedWorkFillsTheWait) {
  std::vector<CommunicationJob> jobs = {Job(0, {CommunicationWork::Collective(1, 0, 1)}),
                                        Job(0, {CommunicationWork::Collective(4, 0, 1)})};
  jobs[0].unlocks = 1;
  jobs[1].unlocks = 7;
  OverlapTimes times = Overlap(2, 1, jobs);
  EXPECT_NEAR(times.compute_end, 2, kClose);
  EXPECT_NEAR(times.end, 5, kClose);
  EXPECT_NEAR(times.unlocked, 1, kClose);
  EXPECT_NEAR(times.exposed_wire, 2, kClose);
  EXPECT_NEAR(times.contention(2), 0, kClose);
  // More than fits: the rest is left, and nothing waits.
  jobs[0].unlocks = 10;
  times = Overlap(2, 1, jobs);
  EXPECT_NEAR(times.end, 5, kClose);
  EXPECT_NEAR(times.unlocked, 3, kClose);
  EXPECT_NEAR(times.exposed_wire, 0, kClose);
  // Coding takes half of the core from it, and is itself half as fast.
  jobs[1].work = {CommunicationWork::Coding(2, 1)};
  times = Overlap(1, 1, jobs);
  EXPECT_NEAR(times.end, 5, kClose);
  EXPECT_NEAR(times.unlocked, 2, kClose);
  EXPECT_NEAR(times.contention(1), 2, kClose);
}

// One core: coding and computation have half of it each, so 1 s of coding ends 2 s after it began,
// in which 1 s was computed.
TEST(OverlapTest, OnOneCoreCodingAndComputationTakeEqualShares) {
  const std::vector<CommunicationJob> jobs = {Job(0, {CommunicationWork::Coding(1, 1)})};
  const OverlapTimes times = Overlap(3, 1, jobs);
  EXPECT_NEAR(times.end, 4, kClose);
  EXPECT_NEAR(times.compute_end, 4, kClose);
  EXPECT_EQ(times.exposed_coding, 0);
}

// One core; 2 s of sending need half of it, and only a quarter, at half of their speed, while the rank
// computes. That leaves 3/4 for 2 s of computation: they take 8/3 s, in which 4/3 s
// were sent; the rest is exposed.
TEST(OverlapTest, BesideAComputationMessagesMayTakeLonger) {
  CommunicationWork sending = CommunicationWork::Collective(2, 1, 1);
  EXPECT_EQ(sending.beside, 1);
  sending.beside = 0.5;
  const OverlapTimes times = Overlap(2, 1, std::vector{Job(0, {sending})});
  EXPECT_NEAR(times.compute_end, 2 / 0.75, kClose);
  EXPECT_NEAR(times.exposed_wire, 2 - 0.5 * 2 / 0.75, kClose);
}

// A wire faster than the cores that serve it is as fast as those.
TEST(OverlapTest, CoresCanBeTheBottleneckOfTheWire) {
  const CommunicationWork work = CommunicationWork::Collective(1, 3, 0.5);
  EXPECT_DOUBLE_EQ(work.seconds, 6);
  EXPECT_DOUBLE_EQ(work.cores, 0.5);
  EXPECT_EQ(CommunicationWork::Collective(0, 0, 1).seconds, 0);
}

TEST(OverlapTest, JobsKeepTheirOrderWhateverTheirReadyTimes) {
  const std::vector<CommunicationJob> jobs = {Job(3, {CommunicationWork::Collective(1, 0, 1)}),
                                              Job(0, {CommunicationWork::Collective(1, 0, 1)})};
  EXPECT_NEAR(Overlap(4, 1, jobs).end, 5, kClose);
}

// max(compute, jobs) <= end <= compute + jobs, and the exposed parts make up the difference.
// Unlocked work is done in what was waiting before, and no one has to wait for it.
TEST(OverlapTest, StaysBetweenItsBounds) {
  Rng rng(RngKey(2).With(kTestStream));
  for (int trial = 0; trial < 10'000; ++trial) {
    const double compute = rng.Uniform(0.1F, 5), cores = rng.Uniform(0.2F, 16);
    std::vector<CommunicationJob> jobs(rng.Below(6));
    double sum = 0;
    for (CommunicationJob& job : jobs) {
      job.ready = rng.Uniform() * compute;
      for (uint64_t piece = rng.Below(4); piece > 0; --piece) {
        job.Add(rng.Below(2) == 0
                    ? CommunicationWork::Coding(rng.Uniform(), cores)
                    : CommunicationWork::Collective(rng.Uniform(), rng.Uniform(), cores));
      }
      for (CommunicationWork& work : job.work) work.beside = rng.Uniform(0.1F, 1);
      sum += job.seconds();
    }
    const OverlapTimes times = Overlap(compute, cores, jobs);
    const double slack = 1e-9 * (compute + sum);
    ASSERT_GE(times.end, std::max(compute, sum) - slack);
    ASSERT_LE(times.end, compute + sum + slack);
    ASSERT_GE(times.compute_end, compute - slack);
    ASSERT_NEAR(times.end - times.compute_end, times.exposed_wire + times.exposed_coding, slack);
    double unlocks = 0;
    for (CommunicationJob& job : jobs) unlocks += job.unlocks = rng.Uniform();
    const OverlapTimes more = Overlap(compute, cores, jobs);
    ASSERT_GE(more.end, times.end - slack);
    ASSERT_LE(more.end - more.unlocked, times.end + slack);
    ASSERT_LE(more.unlocked, unlocks + slack);
    ASSERT_GE(more.contention(compute), -slack);
  }
}

}  // namespace
}  // namespace ringtail
