#include "layers/net/memory_plan.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace ringtail {
namespace {

bool Overlap(int64_t a_begin, int64_t a_end, int64_t b_begin, int64_t b_end) {
  return a_begin < b_end && b_begin < a_end;
}

void ExpectNoConflict(const std::vector<MemoryRequest>& requests, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + requests[i].bytes, plan.total_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          Overlap(requests[i].first, requests[i].last + 1, requests[j].first, requests[j].last + 1);
      if (!together) continue;
      EXPECT_FALSE(Overlap(plan.offsets[i], plan.offsets[i] + requests[i].bytes, plan.offsets[j],
                           plan.offsets[j] + requests[j].bytes))
          << "buffers " << i << " and " << j << " live together and share memory";
    }
  }
}

TEST(MemoryPlanTest, DisjointLivesShareAnAddress) {
  const std::vector<MemoryRequest> requests = {
      {64 << 10, 0, 1}, {32 << 10, 1, 3}, {64 << 10, 2, 3}};
  const MemoryPlan plan = PlanMemory(requests);
  ExpectNoConflict(requests, plan);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.total_bytes, 96 << 10);
}

TEST(MemoryPlanTest, TouchingLivesDoNotShare) {
  const std::vector<MemoryRequest> requests = {{100, 0, 2}, {100, 2, 4}};
  const MemoryPlan plan = PlanMemory(requests);
  ExpectNoConflict(requests, plan);
  EXPECT_EQ(plan.total_bytes, 256);
}

TEST(MemoryPlanTest, NothingAndEmptyBuffers) {
  EXPECT_EQ(PlanMemory({}).total_bytes, 0);
  const std::vector<MemoryRequest> requests = {{0, 0, 9}, {64, 0, 9}};
  EXPECT_EQ(PlanMemory(requests).total_bytes, 64);
}

TEST(MemoryPlanTest, RandomRequestsNeverConflictAndBeatNoSharing) {
  Rng rng(RngKey(7).With(kTestStream));
  for (int round = 0; round < 50; ++round) {
    std::vector<MemoryRequest> requests;
    int64_t sum = 0;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(rng.Below(40));
      requests.push_back({static_cast<int64_t>(1 + rng.Below(5000)), first,
                          first + static_cast<int>(rng.Below(6))});
      sum += requests.back().bytes;
    }
    const MemoryPlan plan = PlanMemory(requests);
    ExpectNoConflict(requests, plan);
    EXPECT_LT(plan.total_bytes, sum / 2);
  }
}

}  // namespace
}  // namespace ringtail
