#include "core/machine/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// A file system root with our own control groups.
class CgroupMemoryTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int64_t Left() const { return CgroupMemoryLeft(root_.path()); }

 private:
  const TempDir root_;
};

TEST_F(CgroupMemoryTest, WithoutFilesThereIsNoLimit) {
  EXPECT_EQ(Left(), kNone);
  Write("/proc/self/cgroup", "0::/job\n");
  EXPECT_EQ(Left(), kNone);
  Write("/sys/fs/cgroup/job/memory.max", "max\n");
  Write("/sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(Left(), kNone);
}

TEST_F(CgroupMemoryTest, Version2TakesTheTightestOfAllGroupsAbove) {
  Write("/proc/self/cgroup", "0::/slurm/job\n");
  Write("/sys/fs/cgroup/slurm/job/memory.max", "5000\n");
  Write("/sys/fs/cgroup/slurm/job/memory.current", "1000\n");
  EXPECT_EQ(Left(), 4000);
  Write("/sys/fs/cgroup/slurm/memory.max", "6000\n");
  Write("/sys/fs/cgroup/slurm/memory.current", "5500\n");
  EXPECT_EQ(Left(), 500);
}

TEST_F(CgroupMemoryTest, ThePageCacheIsFree) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/memory.max", "5000\n");
  Write("/sys/fs/cgroup/memory.current", "4990\n");
  Write("/sys/fs/cgroup/memory.stat",
        "anon 990\nfile 4000\ninactive_file 3000\nactive_file 1000\n");
  EXPECT_EQ(Left(), 4010);
}

TEST_F(CgroupMemoryTest, Version1) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/docker/abc\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "123456\n");
  EXPECT_EQ(Left(), kNone);
  Write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "5000\n");
  Write("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "4000\n");
  Write("/sys/fs/cgroup/memory/docker/abc/memory.stat",
        "inactive_file 1\ntotal_inactive_file 2000\ntotal_active_file 500\n");
  EXPECT_EQ(Left(), 3500);
}

TEST(MemoryLimitTest, ThisMachineHasSomeMemoryLeftAndNotMoreThanItHas) {
  EXPECT_GT(AvailableMemoryBytes(), 0);
  EXPECT_LT(AvailableMemoryBytes(), int64_t{1} << 50);
  EXPECT_TRUE(CheckMemoryAvailable(1, "a byte").ok());
  const Status refused = CheckMemoryAvailable(int64_t{1} << 50, "a dream");
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message().rfind("a dream needs 1048576.0 GiB, but only ", 0), 0U);
}

}  // namespace
}  // namespace ringtail
