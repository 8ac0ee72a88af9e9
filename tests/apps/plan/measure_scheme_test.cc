// Coding in the facts is processor time, however long the thread waited for a processor meanwhile.
#include "apps/plan/measure_scheme.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/machine/processor_time.h"
#include "tests/testing/one_busy_core.h"

namespace ringtail {
namespace {

double SumOf(const auto& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

TEST(MeasureSchemeTest, DoesNotCountWhatItWaitsForAProcessor) {
  const auto arena = ParameterArena::Create(
      {{.name = "fc.weight", .shape = {2000, 1000}, .kind = ParameterKind::kLinearWeight}}, {});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  CompressionConfig compression;
  compression.mutable_scheme()->mutable_top_k()->set_density(0.01);
  const OneBusyCore busy;
  ASSERT_TRUE(busy.kept());
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
