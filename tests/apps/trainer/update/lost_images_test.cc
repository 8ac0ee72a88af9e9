#include "apps/trainer/update/lost_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(LostImagesTest, SmallBadBatchesAreNoReasonToStop) {
  LostImages lost("images");
  EXPECT_TRUE(lost.Check(LostImages::kMostLost - 1, 0).ok());
  EXPECT_TRUE(lost.Check(1000, 1).ok());
  EXPECT_TRUE(lost.Check(LostImages::kMostLost - 1, 0).ok())
      << "counted from the last that was read";
}

TEST(LostImagesTest, ARowOfUnreadableImagesNamesTheFolder) {
  LostImages lost("the folder");
  EXPECT_TRUE(lost.Check(4, 0).ok());
  const Status status = lost.Check(4, 0);
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("none of the last 8 images could be read; is "
                                                   "the folder (data.path) still there?"));
}

}  // namespace
}  // namespace ringtail
