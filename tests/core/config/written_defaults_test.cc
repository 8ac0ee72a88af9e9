// All defaults are written out, but for members of a oneof that are not set.
#include "core/config/written_defaults.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "apps/run.pb.h"

namespace ringtail {
namespace {

using google::protobuf::util::MessageDifferencer;

bool SameWithDefaults(NetConfig a, NetConfig b) {
  WriteOutDefaults(&a);
  WriteOutDefaults(&b);
  return MessageDifferencer::Equals(a, b);
}

TEST(WrittenDefaults, ADefaultThatIsWrittenOutIsNoDifference) {
  NetConfig a, b;
  a.add_layer()->mutable_linear()->set_out_features(2);
  b = a;
  LinearConfig* const linear = b.mutable_layer(0)->mutable_linear();
  linear->set_bias(linear->bias());
  EXPECT_FALSE(MessageDifferencer::Equals(a, b));
  EXPECT_TRUE(SameWithDefaults(a, b));
  linear->set_bias(!linear->bias());
  EXPECT_FALSE(SameWithDefaults(a, b));
}

TEST(WrittenDefaults, WhichMemberOfAOneofIsSetIsADifference) {
  NetConfig a, b, neither;
  a.add_layer()->mutable_relu();
  b.add_layer()->mutable_sigmoid();
  neither.add_layer();
  EXPECT_TRUE(MessageDifferencer::Equivalent(a, b)) << "what it is for";
  EXPECT_FALSE(SameWithDefaults(a, b));
  EXPECT_FALSE(SameWithDefaults(a, neither));
  EXPECT_TRUE(SameWithDefaults(a, a));
}

TEST(WrittenDefaults, EveryFieldOfARunHasOne) {
  RunConfig config;
  WriteOutDefaults(&config);
  EXPECT_TRUE(config.train().has_batch());
  EXPECT_EQ(config.train().batch(), RunConfig().train().batch());
  EXPECT_FALSE(config.optim().has_sgd()) << "a member of a oneof";
}

}  // namespace
}  // namespace ringtail
