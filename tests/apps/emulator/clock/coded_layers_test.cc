// What coding costs is processor time, however long the thread waited for a processor meanwhile.
#include "apps/emulator/clock/coded_layers.h"

#include <gtest/gtest.h>

#include "core/machine/processor_time.h"
#include "tests/testing/one_busy_core.h"

namespace ringtail {
namespace {

TEST(CodedLayersTest, MeasuresNoWaitForAProcessor) {
  const auto arena = ParameterArena::Create(
      {{.name = "fc.weight", .shape = {2000, 1000}, .kind = ParameterKind::kLinearWeight}}, {});
  ASSERT_TRUE(arena.ok()) << arena.status().message();
  CodedKind kind;
  kind.config.mutable_scheme()->mutable_top_k()->set_density(0.01);
  const OneBusyCore busy;
  ASSERT_TRUE(busy.kept());
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
