// Coding in the facts is processor time, however long the thread waited for a processor meanwhile.
#include "apps/plan/measure_scheme.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <numeric>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/machine/processor_time.h"

namespace ringtail {
namespace {

constexpr int kNeighbors = 8;

// This thread, and those that it starts from now on, run on one core.
bool KeepToOneCore() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return false;
  int core = 0;
  while (!CPU_ISSET(core, &cores)) ++core;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  return sched_setaffinity(0, sizeof cores, &cores) == 0;
}

double SumOf(const auto& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

TEST(MeasureSchemeTest, DoesNotCountWhatItWaitsForAProcessor) {
  const auto arena = ParameterArena::Create(
      {{.name = "fc.weight", .shape = {2000, 1000}, .kind = ParameterKind::kLinearWeight}}, {});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  CompressionConfig compression;
  compression.mutable_scheme()->mutable_top_k()->set_density(0.01);
  ASSERT_TRUE(KeepToOneCore());
  std::vector<std::jthread> neighbors;
  neighbors.reserve(kNeighbors);
  for (int i = 0; i < kNeighbors; ++i) {
    neighbors.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
  }
  const double start = ThreadSeconds();
  const SchemeFacts facts = MeasureScheme("top_k", compression, **arena);
  const double used = ThreadSeconds() - start;
  const double coding = SumOf(facts.encode_s()) + SumOf(facts.decode_s()) + SumOf(facts.clear_s());
  EXPECT_GT(coding, 0);
  // Two of three runs, at least, took as long as their median. By the clock, each is nine times as long.
  EXPECT_LE(2 * coding, used);
}

}  // namespace
}  // namespace ringtail
