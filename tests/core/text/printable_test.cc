#include "core/text/printable.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace ringtail {
namespace {

TEST(PrintableTest, PrintableCharactersStay) {
  for (const std::string_view text :
       {"", "plain text, 100 %", "two\nlines\tand a tab", "Hündchen", "日本", "🐈", "C:\\cats",
        "a\xC2\xA0"
        "b",
        "\xD7\x90\xE2\x80\x8F" /* a Hebrew letter and a right-to-left mark */}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(PrintableTest, ControlCharactersAreEscaped) {
  for (const auto& [text, shown] : {
           std::pair<std::string_view, std::string_view>{"a\x1B[2Jb", "a\\x1B[2Jb"},
           {"over\rwritten", "over\\x0Dwritten"},
           {"\x07\x7F", "\\x07\\x7F"},
           {"\xC2\x9B"
            "31m",
            "\\xC2\\x9B"
            "31m"},                                          // C1: CSI as one character
           {"cat\xE2\x80\xAEgpj", "cat\\xE2\\x80\\xAEgpj"},  // U+202E
           {"\xE2\x81\xA6x\xE2\x81\xA9", "\\xE2\\x81\\xA6x\\xE2\\x81\\xA9"},  // U+2066, U+2069
           {"\xE2\x80\xA8", "\\xE2\\x80\\xA8"},                               // U+2028
           {"\xFF\xC3", "\\xFF\\xC3"},                                        // not UTF-8
           {"\xE2\x80", "\\xE2\\x80"},
       }) {
    EXPECT_EQ(Printable(text), shown);
  }
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
}

TEST(PrintableTest, LengthsOfCharacters) {
  EXPECT_EQ(PrintableCharacter("ab"), 1u);
  EXPECT_EQ(PrintableCharacter("ü"), 2u);
  EXPECT_EQ(PrintableCharacter("日"), 3u);
  EXPECT_EQ(PrintableCharacter("🐈"), 4u);
  EXPECT_EQ(PrintableCharacter("\n"), 0u);
  EXPECT_EQ(PrintableCharacter("\xE2\x80\xAD"), 0u);
  EXPECT_EQ(PrintableCharacter("\xE2\x80\xAF"), 3u);  // U+202F, a narrow blank
}

}  // namespace
}  // namespace ringtail
