#include "apps/launch/agent/core_split.h"
#include "apps/launch/number_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using Cores = std::vector<int>;

TEST(CoreSplitTest, DealsOutNeighbours) {
  const Cores eight = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(SplitCoreList(eight, 1), ElementsAre(eight));
  EXPECT_THAT(SplitCoreList(eight, 3), ElementsAre(Cores{0, 1, 2}, Cores{3, 4, 5}, Cores{6, 7}));
  EXPECT_THAT(SplitCoreList({4, 6}, 2), ElementsAre(Cores{4}, Cores{6}));
  EXPECT_THAT(SplitCoreList({4, 6}, 3), ElementsAre(Cores{4}, Cores{6}, Cores{4}));
  EXPECT_THAT(SplitCoreList({}, 2), ElementsAre(Cores{}, Cores{}));
}

TEST(CoreSplitTest, ThreadsOfOneCoreStayTogether) {
  const TempDir dir;  // cores 0 and 2 are threads of one physical core, 1 and 3 of the other
  for (int core = 0; core < 4; ++core) {
    const std::string folder =
        dir.File("sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology");
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/physical_package_id") << 0 << '\n';
    std::ofstream(folder + "/core_id") << core % 2 << '\n';
  }
  Cores cores = {0, 1, 2, 3};
  SortByPhysicalCore(&cores, dir.path());
  EXPECT_THAT(cores, ElementsAre(0, 2, 1, 3));
}

TEST(CoreSplitTest, EveryRankHasAThread) {
  EXPECT_EQ(ThreadsPerRank(8, 3), 2);
  EXPECT_EQ(ThreadsPerRank(2, 4), 1);
}

TEST(CoreSplitTest, NumbersReadBack) {
  EXPECT_EQ(FormatNumbers({3, 0, 1, 2, 8}), "0-3,8");
  EXPECT_EQ(FormatNumbers({}), "");
  EXPECT_THAT(*ParseNumbers("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  for (const char* text : {"", "a", "1-", "3-1", "-1", "1,,2", "1,", "1x", "0-999999999"}) {
    EXPECT_FALSE(ParseNumbers(text).ok()) << text;
  }
}

}  // namespace
}  // namespace ringtail
