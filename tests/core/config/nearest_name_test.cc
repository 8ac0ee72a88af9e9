#include "core/config/nearest_name.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(NearestName, FindsTypingErrorsOnly) {
  const std::vector<std::string> names = {"kernel", "stride", "padding", "out_channels", "tanh"};
  EXPECT_EQ(NearestName("kernal", names), "kernel");
  EXPECT_EQ(NearestName("sride", names), "stride");
  EXPECT_EQ(NearestName("stirde", names), "stride") << "swapped neighbours are one mistake";
  EXPECT_EQ(NearestName("out_chanels", names), "out_channels");
  EXPECT_EQ(NearestName("Tanh", names), "tanh");
  EXPECT_EQ(NearestName("adamW", {"adam", "adamw"}), "adamw");
  EXPECT_EQ(NearestName("SGD", {"adam", "sgd"}), "sgd") << "case does not count";
  EXPECT_EQ(NearestName("pad", names), "padding") << "the only completion";
  EXPECT_EQ(NearestName("dilation", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'k'), names), "");
  EXPECT_EQ(NearestName("kernel", {}), "");
  EXPECT_EQ(NearestName("con", {"concat", "convolution"}), "") << "two completions";
}

}  // namespace
}  // namespace ringtail
