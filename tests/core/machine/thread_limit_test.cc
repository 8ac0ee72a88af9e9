#include "core/machine/thread_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/terminate.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;  // reserves terabytes of address space
#else
constexpr bool kSanitized = false;
#endif

// Mapped bytes of the process.
int64_t MappedBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages * 4096;
}

// Sets the limit to the currently mapped bytes and `more`.
void LimitAddressSpace(int64_t more) {
  const auto bytes = static_cast<rlim_t>(MappedBytes() + more);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

TEST(ThreadLimitTest, AFewThreadsCanAlwaysStart) {
  EXPECT_TRUE(CheckThreadsCanStart(0, "nothing").ok());
  EXPECT_TRUE(CheckThreadsCanStart(5, "a test").ok());
}

// The stacks of the checking threads are available to later threads.
TEST(ThreadLimitDeathTest, CheckingTakesNoAddressSpace) {
  if (kSanitized) GTEST_SKIP() << "the address space cannot be limited";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        SaveAddressSpace();
        LimitAddressSpace(int64_t{1} << 30);
        const int64_t before = MappedBytes();
        const Status status = CheckThreadsCanStart(4, "a test");
        const int64_t kept = MappedBytes() - before;
        std::fprintf(stderr, "%s kept %lld bytes\n", status.message().c_str(),
                     static_cast<long long>(kept));
        std::exit(status.ok() && kept < (int64_t{1} << 20) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "kept");
}

TEST(ThreadLimitDeathTest, TheLimitIsNamed) {
  if (kSanitized) GTEST_SKIP() << "the address space cannot be limited";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        LimitAddressSpace(int64_t{64} << 20);
        const Status status = CheckThreadsCanStart(64, "reading images");
        std::fprintf(stderr, "%s\n", status.message().c_str());
        std::exit(status.code() == StatusCode::kResourceExhausted ? 1 : 0);
      },
      testing::ExitedWithCode(1),
      "reading images: [0-9]+ of 64 threads could be started .* of address space .ulimit -v.");
}

// Additional mapped pages once 8 threads have allocated something. The threads live until all of
// them have done so.
int64_t PagesOfThreads() {
  constexpr int kThreads = 8;
  const auto pages = [] {
    std::ifstream file("/proc/self/statm");
    int64_t mapped = 0;
    file >> mapped;
    return mapped;
  };
  const int64_t before = pages();
  std::barrier all(kThreads + 1);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      void* const volatile some = std::malloc(100);
      std::free(some);
      all.arrive_and_wait();
      all.arrive_and_wait();
    });
  }
  all.arrive_and_wait();
  const int64_t more = pages() - before;
  all.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  return more;
}

TEST(ThreadLimitDeathTest, MallocReservesNothingPerThreadUnderAnAddressSpaceLimit) {
  if (kSanitized) GTEST_SKIP() << "the address space cannot be limited";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        constexpr int64_t kArenaPages = (int64_t{64} << 20) / 4096;
        LimitAddressSpace(int64_t{8} << 30);
        SaveAddressSpace();
        // 8 stacks, usually of 8 MiB, take less than one arena each.
        std::exit(PagesOfThreads() < 4 * kArenaPages ? 1 : 0);
      },
      testing::ExitedWithCode(1), "");
}

TEST(ThreadLimitTest, ReportsTheTightestGroup) {
  const TempDir root;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path file = root.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  write("/proc/self/cgroup", "0::/a/b\n");
  write("/sys/fs/cgroup/a/b/pids.max", "max\n");
  EXPECT_THAT(DescribeThreadLimits(root.path()), testing::Not(HasSubstr("pids.max")));
  write("/sys/fs/cgroup/a/pids.max", "3\n");
  write("/sys/fs/cgroup/a/b/pids.max", "100\n");
  EXPECT_THAT(DescribeThreadLimits(root.path()),
              HasSubstr("3 processes and threads (pids.max of the control group)"));
  EXPECT_THAT(DescribeThreadLimits(root.path()), HasSubstr("--threads"));
}

// Like oneTBB on a thread of its own.
TEST(TerminateDeathTest, AThreadThatCannotBeStartedIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ExplainTermination("program");
        std::thread([] { throw std::runtime_error("pthread_create has failed"); }).join();
      },
      testing::ExitedWithCode(1), "program: a thread could not be started .* limits: .*--threads");
}

TEST(TerminateDeathTest, MissingMemoryIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ExplainTermination("program");
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(1), "program: out of memory; take");
}

TEST(TerminateDeathTest, OtherExceptionsAreOurBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ExplainTermination("program");
        std::thread([] { throw std::logic_error("a wrong turn"); }).join();
      },
      testing::KilledBySignal(SIGABRT), "internal error, please report it: a wrong turn");
}

}  // namespace
}  // namespace ringtail
