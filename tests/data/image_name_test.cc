#include "data/image_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ringtail {
namespace {

TEST(ImageNameTest, NaturalOrder) {
  // "01" and "1" are the same number; their bytes decide.
  const std::vector<std::string> expected = {
      "",     "01",    "1",      "2",      "10",         "100000000000000000000000",
      "cat.", "cat.2", "cat.2a", "cat.10", "cat.10.jpg", "dog.1"};
  std::vector<std::string> sorted(expected.rbegin(), expected.rend());
  std::sort(sorted.begin(), sorted.end(), NaturalLess);
  EXPECT_EQ(sorted, expected);
}

TEST(ImageNameTest, NaturalOrderIsATotalOrder) {
  std::vector<std::string> names;
  for (const char* a : {"", "a", "0", "00", "1", "01"}) {
    for (const char* b : {"", "b", "7", "07"}) {
      for (const char* c : {".", "\xff"}) names.push_back(std::string(a) + c + b);
    }
  }
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      EXPECT_EQ(NaturalLess(a, b) + NaturalLess(b, a), a == b ? 0 : 1) << a << " " << b;
      for (const std::string& c : names) {
        if (NaturalLess(a, b) && NaturalLess(b, c)) {
          EXPECT_TRUE(NaturalLess(a, c));
        }
      }
    }
  }
}

TEST(ImageNameTest, EscapesAllButPrintableUtf8) {
  EXPECT_EQ(EscapeName("caf\xc3\xa9 \xf0\x9f\x90\x88.jpg"), "caf\xc3\xa9 \xf0\x9f\x90\x88.jpg");
  EXPECT_EQ(EscapeName("a\nb\x7f\x1b[2J"), "a\\x0Ab\\x7F\\x1B[2J");
  EXPECT_EQ(EscapeName("a\\b"), "a\\x5Cb");
  EXPECT_EQ(EscapeName("\xe7on"), "\\xE7on");       // Latin-1
  EXPECT_EQ(EscapeName("\xc0\xaf"), "\\xC0\\xAF");  // overlong
  EXPECT_EQ(EscapeName("\xe0\x80\xaf"), "\\xE0\\x80\\xAF");
  EXPECT_EQ(EscapeName("\xed\xa0\x80"), "\\xED\\xA0\\x80");                      // surrogate
  EXPECT_EQ(EscapeName("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");             // above U+10FFFF
  EXPECT_EQ(EscapeName("cat\xe2\x80\xaegpj.exe"), "cat\\xE2\\x80\\xAEgpj.exe");  // U+202E
  EXPECT_EQ(EscapeName("\xc2\x85"), "\\xC2\\x85");                               // control
  EXPECT_EQ(EscapeName("\xe2\x82"), "\\xE2\\x82");                               // cut off
}

TEST(ImageNameTest, EscapedNamesArePrintableAndDiffer) {
  std::vector<std::string> escaped;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char name[] = {static_cast<char>(a), static_cast<char>(b)};
      escaped.push_back(EscapeName({name, 2}));
      EXPECT_TRUE(IsPrintable(escaped.back()));
    }
  }
  std::sort(escaped.begin(), escaped.end());
  EXPECT_EQ(std::adjacent_find(escaped.begin(), escaped.end()), escaped.end());
  EXPECT_FALSE(IsPrintable("a\n"));
}

TEST(ImageNameTest, NumbersInNames) {
  const auto cat = ParseNumberedName("train/cat.0012.jpg");
  ASSERT_TRUE(cat.has_value());
  EXPECT_EQ(cat->stem, "cat");
  EXPECT_EQ(cat->number, 12);
  const auto plain = ParseNumberedName("Cat/666.jpg");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->stem, "");
  EXPECT_EQ(plain->number, 666);
  for (const char* name : {"cat.jpg", "cat.-1.jpg", "cat.1x.jpg", "cat..jpg", "12", "",
                           "cat.99999999999999999999.jpg"}) {
    EXPECT_FALSE(ParseNumberedName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace ringtail
