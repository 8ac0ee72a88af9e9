#include "dist/collectives/size_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace ringtail {
namespace {

using ::testing::HasSubstr;

TEST(SizeTable, ReadsEntriesThatFollowEachOther) {
  const auto table = ParseSizeTable(
      "recursive_doubling:0-65536;halving_doubling:65536-1048576;"
      "ring:1048576-");
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  ASSERT_EQ(table->size(), 3U);
  EXPECT_EQ((*table)[0].algorithm->name, "recursive_doubling");
  EXPECT_EQ((*table)[0].from_bytes, 0);
  EXPECT_EQ((*table)[0].to_bytes, 65536);
  EXPECT_EQ((*table)[1].algorithm->name, "halving_doubling");
  EXPECT_EQ((*table)[1].text, "halving_doubling:65536-1048576");
  EXPECT_EQ((*table)[2].algorithm->name, "ring");
  EXPECT_EQ((*table)[2].from_bytes, 1048576);
  EXPECT_EQ((*table)[2].to_bytes, std::numeric_limits<int64_t>::max());
}

TEST(SizeTable, OneOpenEntryIsATable) {
  const auto table = ParseSizeTable("ring:0-");
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  EXPECT_EQ(table->size(), 1U);
}

struct Mistake {
  const char* text;
  const char* message;
};

class SizeTableMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(SizeTableMistake, IsNamedWithItsColumn) {
  const auto table = ParseSizeTable(GetParam().text);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(table.status().message(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, SizeTableMistake,
    ::testing::Values(
        Mistake{"", "size table '', column 1: unknown allreduce algorithm ''"},
        Mistake{"ring", "column 5: expected ':' after the name"},
        Mistake{"rnig:0-", "column 1: unknown allreduce algorithm 'rnig'; did you mean 'ring'?"},
        Mistake{"ring:0-9;rnig:9-", "column 10: unknown allreduce algorithm 'rnig'"},
        Mistake{"ring:", "column 6: expected a number of bytes"},
        Mistake{"ring:-5", "column 6: expected a number of bytes"},
        Mistake{"ring: 0-", "column 6: expected a number of bytes"},
        Mistake{"ring:0", "column 7: expected '-'"},
        Mistake{"ring:0-64k;ring:64000-", "column 10: expected ';' or the end"},
        Mistake{"ring:0- ", "column 8: expected a number of bytes"},
        Mistake{"ring:1-", "column 6: this entry must begin at 0, as the first one, not at 1"},
        Mistake{"ring:0-10;ring:11-",
                "column 16: this entry must begin at 10, where the one before it ends, not at 11"},
        Mistake{"ring:0-10;ring:9-", "column 16: this entry must begin at 10"},
        Mistake{"ring:0-0;ring:0-", "column 8: 0 bytes is not more than 0"},
        Mistake{"ring:0-10;ring:10-7", "column 19: 7 bytes is not more than 10"},
        Mistake{"ring:0-10", "column 8: the last entry must be open, as in 'ring:0-'"},
        Mistake{"ring:0-;ring:10-", "column 8: only the last entry may be open"},
        Mistake{"ring:0-10;", "column 11: unknown allreduce algorithm ''"},
        Mistake{"ring:0-99999999999999999999;ring:9-", "column 8: a number of bytes beyond 2^63"},
        Mistake{"ring:0-9223372036854775807;ring:9223372036854775807-",
                "is not more than 9223372036854775807"}));

}  // namespace
}  // namespace ringtail
