#include "apps/trainer/asynchronous/server_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ServerProgressTest, AsDrawn) {
  const ServerProgress progress{
      .version = 1200, .images = 38'400, .next = 40'960, .unused = {{0, 32}, {4096, 8}}};
  const std::string text = "1200 38400 40960 0 32 4096 8";
  EXPECT_EQ(ServerProgressText(progress), text);
  const auto read = ParseServerProgress(text);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(NumbersOf(*read), NumbersOf(progress));
  EXPECT_THAT(read->unused, ElementsAre(Ticket{0, 32}, Ticket{4096, 8}));
  EXPECT_TRUE(ParseServerProgress("")->empty()) << "of a run that has no servers";
}

TEST(ServerProgressTest, WhatIsDamagedIsRefused) {
  for (const char* text : {"1", "1 2", "1 2 3 4", "1 2 -3", "1 2 3 x 5", "1  2 3"}) {
    EXPECT_EQ(ParseServerProgress(text).status().code(), StatusCode::kDataLoss) << text;
  }
}

}  // namespace
}  // namespace ringtail
