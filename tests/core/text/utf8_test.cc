#include "core/text/utf8.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

TEST(ValidUtf8Prefix, AcceptsWhatTheStandardDefines) {
  for (const std::string_view text :
       {"", "plain", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(ValidUtf8Prefix(text), text.size()) << text;
  }
  EXPECT_EQ(ValidUtf8Prefix(std::string_view("a\0b", 3)), 3u);
}

TEST(ValidUtf8Prefix, StopsAtTheFirstWrongCharacter) {
  for (const std::string_view wrong :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3", "\xC3(", "\xE2\x82", "\xE2(\x82",
        "\xE2\x82(", "\xF0\x9F\x90", "\xF0\x9F\x90("}) {
    EXPECT_EQ(ValidUtf8Prefix(wrong), 0u) << testing::PrintToString(wrong);
    EXPECT_EQ(ValidUtf8Prefix("aü" + std::string(wrong) + "b"), 3u);
  }
}

}  // namespace
}  // namespace ringtail
