#include "dist/collectives/plan.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(EvenPart, PartsFollowEachOtherAndDifferByAtMostOne) {
  for (const int64_t count : {0, 1, 6, 7, 100}) {
    for (const int64_t parts : {1, 2, 7, 33}) {
      int64_t end = 0;
      for (int64_t i = 0; i < parts; ++i) {
        const ElementRange part = EvenPart(count, parts, i);
        EXPECT_EQ(part.offset, end);
        EXPECT_EQ(part.count, count / parts + (i < count % parts ? 1 : 0));
        end = part.end();
      }
      EXPECT_EQ(end, count);
    }
  }
}

TEST(EvenPart, LargeCountsDoNotOverflow) {
  const int64_t count = int64_t{1} << 40;
  EXPECT_EQ(EvenPart(count, 3, 2).end(), count);
}

}  // namespace
}  // namespace ringtail
