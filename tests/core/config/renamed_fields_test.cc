#include "core/config/renamed_fields.h"

#include <gtest/gtest.h>

#include "apps/run.pb.h"
#include "core/config/config_override.h"
#include "core/config/text_config.h"

namespace ringtail {
namespace {

TEST(RenamedFieldsTest, OldNamesBecomeCurrentOnesAndNothingElseMoves) {
  EXPECT_EQ(WithCurrentFieldNames("data { bad_pictures { max_fraction: 0.5 } }  # bad_pictures\n"),
            "data { bad_images   { max_fraction: 0.5 } }  # bad_pictures\n");
  EXPECT_EQ(WithCurrentFieldNames("path: \"bad_pictures\" x_bad_pictures bad_pictures:"),
            "path: \"bad_pictures\" x_bad_pictures bad_images  :");
  for (const std::string text : {"", "\"", "'\\", "# ", "bad_pictures", "\"\\\"bad_pictures\""}) {
    EXPECT_EQ(WithCurrentFieldNames(text).size(), text.size());
  }
}

TEST(RenamedFieldsTest, AnOldConfigAndAnOldOverrideSetTheField) {
  RunConfig run;
  ConfigSource source;
  ASSERT_TRUE(
      ParseTextConfig("data { bad_pictures { max_side: 9 } }", "old.textproto", &run, &source)
          .ok());
  EXPECT_EQ(run.data().bad_images().max_side(), 9);
  ASSERT_TRUE(ApplyOverride("data.bad_pictures.max_fraction=0.25", &run, &source).ok());
  EXPECT_EQ(run.data().bad_images().max_fraction(), 0.25);
}

TEST(RenamedFieldsTest, ErrorsInAnOldConfigKeepTheirPlace) {
  RunConfig run;
  const Status status =
      ParseTextConfig("data { bad_pictures { max_sied: 9 } }", "old.textproto", &run, nullptr);
  EXPECT_NE(status.message().find("old.textproto:1:23"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace ringtail
