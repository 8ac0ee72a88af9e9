#include "core/config/message_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "apps/run.pb.h"
#include "core/config/text_config.h"

namespace ringtail {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(CheckFinite, NamesTheOffender) {
  RunConfig run;
  ConfigSource source;
  const auto check = [&](std::string_view text) {
    EXPECT_TRUE(ParseTextConfig(text, "run.textproto", &run, &source).ok());
    return CheckFinite(run, &source, "").message();
  };
  EXPECT_EQ(check("optim { learning_rate: 1e30 }"), "");
  EXPECT_EQ(check("optim {\n  learning_rate: nan }"),
            "run.textproto:2:3: optim.learning_rate is nan; give a finite number\n"
            "    learning_rate: nan }\n"
            "    ^");
  EXPECT_THAT(check("data { mean: 1 mean: -inf }"),
              StartsWith("run.textproto:1:16: data.mean[1] is -inf"));
  EXPECT_THAT(check("data { mean: [1, inf] }"),
              StartsWith("run.textproto:1:8: data.mean[1] is inf"));
  EXPECT_THAT(check("net { layer {} layer { repeat { layer { dropout { rate: inf } } } } }"),
              HasSubstr("net.layer[1].repeat.layer[0].dropout.rate is inf"));
  EXPECT_THAT(check("optim { sgd { momentum: 1e999 } }"), HasSubstr("optim.sgd.momentum is inf"));
}

TEST(CheckFinite, WithoutASource) {
  TrainConfig train;
  train.set_epochs(std::nan(""));
  EXPECT_EQ(CheckFinite(train, nullptr, "train").message(),
            "train.epochs is nan; give a finite number");
}

}  // namespace
}  // namespace ringtail
