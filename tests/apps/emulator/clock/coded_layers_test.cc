// What coding costs is processor time, however long the thread waited for a processor meanwhile.
#include "apps/emulator/clock/coded_layers.h"

#include <gtest/gtest.h>
#include <sched.h>

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

TEST(CodedLayersTest, MeasuresNoWaitForAProcessor) {
  const auto arena = ParameterArena::Create(
      {{.name = "fc.weight", .shape = {2000, 1000}, .kind = ParameterKind::kLinearWeight}}, {});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  CodedKind kind;
  kind.config.mutable_scheme()->mutable_top_k()->set_density(0.01);
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
  const LayerCoding coding = MeasureCodedLayers(kind, **arena);
  const double used = ThreadSeconds() - start;
  EXPECT_GT(coding.encode_seconds, 0);
  EXPECT_GT(coding.decode_seconds, 0);
  // Two of three runs, at least, took as long as their median. By the clock, each is nine times as long.
  EXPECT_LE(2 * (coding.encode_seconds + coding.decode_seconds), used);
}

}  // namespace
}  // namespace ringtail
