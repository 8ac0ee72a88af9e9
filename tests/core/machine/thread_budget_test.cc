#include "core/machine/thread_budget.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/machine/core_counters.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

// A file system root with our own control groups.
class CgroupTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& root() const { return dir_.path(); }
  double Quota() const { return CgroupQuota(root()); }

 private:
  const TempDir dir_;
};

TEST_F(CgroupTest, WithoutFilesThereIsNoQuota) {
  EXPECT_TRUE(std::isinf(Quota()));
  Write("/proc/self/cgroup", "0::/\n");
  EXPECT_TRUE(std::isinf(Quota()));
  EXPECT_EQ(UsableCores(root()), AffinityCores());
}

TEST_F(CgroupTest, Version2) {
  Write("/proc/self/cgroup", "0::/user.slice/job\n");
  Write("/sys/fs/cgroup/user.slice/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(Quota(), 2.5);
  Write("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(Quota()));
}

TEST_F(CgroupTest, Version2TakesTheTightestOfAllGroupsAbove) {
  Write("/proc/self/cgroup", "0::/a/b/c\n");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  Write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(Quota(), 3);
  Write("/sys/fs/cgroup/cpu.max", "50000 50000\n");
  EXPECT_EQ(Quota(), 1);
}

TEST_F(CgroupTest, Version1) {
  Write("/proc/self/cgroup",
        "12:cpuset:/other\n5:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n1:name=systemd:/x\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "400000\n");
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "200000\n");
  Write("/sys/fs/cgroup/cpuset/other/cpu.cfs_quota_us", "1\n");
  Write("/sys/fs/cgroup/cpuset/other/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 2) << "only the group of the cpu controller counts";
  Write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(Quota()));
}

TEST_F(CgroupTest, Version1InAContainerThatSeesItsGroupAsTheMount) {
  Write("/proc/self/cgroup", "5:cpuacct,cpu:/docker/abc\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Quota(), 1.5);
}

TEST_F(CgroupTest, GroupsOutsideTheNamespaceAreNotFollowed) {
  Write("/proc/self/cgroup", "0::/../../outside\n");
  Write("/outside/cpu.max", "100000 100000\n");
  Write("/sys/outside/cpu.max", "100000 100000\n");
  Write("/sys/fs/cgroup/cpu.max", "700000 100000\n");
  EXPECT_EQ(Quota(), 7);
}

TEST_F(CgroupTest, InvalidContentIsNoQuota) {
  Write("/proc/self/cgroup", "nonsense\n\n::\n0:\n0::relative\n0::/g\n");
  for (const char* text : {"", "max", "0 100000", "-5 100000", "100000 0", "x y", "100000"}) {
    Write("/sys/fs/cgroup/g/cpu.max", text);
    EXPECT_TRUE(std::isinf(Quota())) << text;
  }
}

TEST_F(CgroupTest, TheLongestTimeThatAQuotaHasHeldThreads) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/old\n0::/a/b\n");
  EXPECT_EQ(CgroupHeldSeconds(root()), 0);
  Write("/sys/fs/cgroup/a/b/cpu.stat",
        "usage_usec 9000000\nnr_throttled 4\nthrottled_usec 250000\n");
  EXPECT_EQ(CgroupHeldSeconds(root()), 0.25);
  Write("/sys/fs/cgroup/a/cpu.stat", "usage_usec 9000000\nthrottled_usec 1500000\n");
  EXPECT_EQ(CgroupHeldSeconds(root()), 1.5);
  Write("/sys/fs/cgroup/cpu,cpuacct/old/cpu.stat", "nr_periods 9\nthrottled_time 3000000000\n");
  EXPECT_EQ(CgroupHeldSeconds(root()), 3);
}

TEST_F(CgroupTest, HeldByQuotaCountsFromWhereItBegan) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.stat", "throttled_usec 5000000\n");
  HeldByQuota without(root());
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  HeldByQuota held(root());
  Write("/sys/fs/cgroup/cpu.stat", "throttled_usec 7000000\n");
  EXPECT_EQ(held.Seconds(), 2);
  EXPECT_EQ(held.Seconds(), 0);
  EXPECT_EQ(without.Seconds(), 0);
}

TEST_F(CgroupTest, UsableCoresRoundAQuotaUp) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "10000 100000\n");
  EXPECT_EQ(UsableCores(root()), 1);
  Write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(UsableCores(root()), 1);
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(UsableCores(root()), std::min(2, AffinityCores()));
  Write("/sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(UsableCores(root()), AffinityCores()) << "a quota adds no cores";
}

TEST(AffinityCores, FollowsTheMask) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_EQ(AffinityCores(), CPU_COUNT(&all));
  int in_thread = 0;
  std::thread([&] {  // each thread has its own mask
    int first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof(one), &one) == 0) in_thread = AffinityCores();
  })
      .join();
  EXPECT_EQ(in_thread, 1);
}

TEST(SplitCores, GivesEverythingToBothByDefault) {
  const ThreadBudget budget = SplitCores(2, 0, 0);
  EXPECT_EQ(budget.compute, 2);
  EXPECT_EQ(budget.input, 2);
  EXPECT_EQ(budget.Describe(), "2 cores: 2 compute, 2 input (shared)");
}

TEST(SplitCores, UsesGivenNumbers) {
  EXPECT_EQ(SplitCores(8, 6, 2).Describe(), "8 cores: 6 compute, 2 input");
  EXPECT_EQ(SplitCores(8, 6, 0).input, 8);
  EXPECT_EQ(SplitCores(1, 1, 1).Describe(), "1 core: 1 compute, 1 input (shared)");
  EXPECT_EQ(SplitCores(2, 4, 1).compute, 4) << "who asks for more than there is gets it";
}

TEST(SplitCores, CommunicationComesFirst) {
  EXPECT_EQ(SplitCores(8, 0, 3, 1).Describe(),
            "8 cores: 7 compute, 3 input, 1 communication (shared)");
  EXPECT_EQ(SplitCores(1, 0, 0, 1).compute, 1);
}

TEST(ThreadName, IsCutToLinuxsLimit) {
  std::string name, long_name, empty_name = "?";
  std::thread([&] {
    SetThreadName("rt-loader-3");
    name = ThreadName();
    SetThreadName("a-name-of-more-than-15-bytes");
    long_name = ThreadName();
    SetThreadName("");
    empty_name = ThreadName();
  }).join();
  EXPECT_EQ(name, "rt-loader-3");
  EXPECT_EQ(long_name, "a-name-of-more-");
  EXPECT_EQ(empty_name, "");
}

}  // namespace
}  // namespace ringtail
