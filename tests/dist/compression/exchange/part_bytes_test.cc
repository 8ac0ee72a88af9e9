// Of a gradient that is divided among ranks, what a block has room for.
#include <gtest/gtest.h>

#include "dist/collectives/plan.h"
#include "dist/compression/exchange/payload_exchange.h"
#include "dist/compression/schemes.h"
#include "tests/dist/compression/codec_runner.h"
#include "tests/testing/parse_config.h"

namespace ringtail {
namespace {

void ExpectRoomForEveryPart(const Codec& codec, int64_t elements, int world) {
  const EncodeContext context = kContext.WithShape({.columns = elements});
  const PartBytes bytes = PartBytesOf(codec, context, world);
  for (int rank = 0; rank < world; ++rank) {
    const int64_t count = EvenPart(elements, world, rank).count;
    if (count == 0) continue;
    EncodeContext part = context.WithShape({.columns = count});
    EXPECT_LE(codec.PayloadBytes(part), bytes.gradient) << elements << " of " << world;
    part.summands = world;
    EXPECT_LE(codec.PayloadBytes(part), bytes.sum) << elements << " of " << world;
  }
}

// 29 elements of two ranks, a fifth kept: 15 take 8 bytes, 14 take 9.
TEST(PartBytes, AreEnoughForTheSmallerPartToo) {
  for (const char* const scheme :
       {"top_k { density: 0.2 values: LEVELS4 }", "top_k { density: 0.05 values: LEVELS4 }",
        "top_k { density: 0.005 }", "top_k { density: 0.01 sum_density: 0.02 values: LEVELS8 }",
        "linear4 {}", "one_bit {}"}) {
    const LayerScheme layer =
        MakeLayerScheme(ParseConfig<CompressionScheme>(scheme), {.rows = 64, .columns = 64});
    for (int world = 2; world <= 24; ++world) {
      for (int64_t elements = 1; elements < 3000; elements += elements < 200 ? 1 : 13) {
        ExpectRoomForEveryPart(*layer.codec, elements, world);
      }
    }
  }
}

}  // namespace
}  // namespace ringtail
