#include "core/machine/short_spin.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/machine/core_watch.h"
#include "core/machine/thread_budget.h"
#include "core/parallel_for.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

// Processor time measures how long a thread spins, however busy the machine is.
TEST(ShortSpin, WaitsAreShortDuringItsLifetimeAndUnderAQuota) {
#ifdef __clang__
  GTEST_SKIP() << "another OpenMP than libgomp: only sanitizers are compiled so";
#endif
  if (AffinityCores() < 2) return;  // a team of two never spins for long on one core
  const TempDir root;
  std::filesystem::create_directories(root.File("proc/self"));
  std::filesystem::create_directories(root.File("sys/fs/cgroup"));
  std::ofstream(root.File("proc/self/cgroup")) << "0::/\n";
  std::ofstream(root.File("sys/fs/cgroup/cpu.max")) << "150000 100000\n";
  const std::string program = RT_BINARY_DIR "/tests/core_short_spin_main";
  const ProcessResult child = ChildProcess({"/usr/bin/env", "-u", "OMP_WAIT_POLICY", "-u",
                                            "GOMP_SPINCOUNT", program, root.path()})
                                  .Wait();
  ASSERT_EQ(child.exit_code, 0) << child.err;
  double before = 0, during = 0, after = 0, under_quota = 0;
  std::istringstream(child.out) >> before >> during >> after >> under_quota;
  EXPECT_GT(before, 0);
  EXPECT_LT(during, before / 3);
  EXPECT_GT(after, before / 3);
  EXPECT_LT(under_quota, before / 3);
}

TEST(CoreWatch, StartsAndStops) {
  SetNumComputeThreads(2);
  int64_t sum = 0;
  for (int i = 0; i < 20; ++i) {
    const CoreWatch watch;
    ParallelFor(1, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  }
  EXPECT_EQ(sum, 20);
}

}  // namespace
}  // namespace ringtail
