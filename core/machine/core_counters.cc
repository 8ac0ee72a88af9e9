#include "core/machine/core_counters.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/machine/processor_time.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr double kNanosecond = 1e-9;

struct RunTimes {
  uint64_t ran_ns = 0, delay_ns = 0;
};

// schedstat: ns on a core, ns ready without a core, number of time slices.
RunTimes ReadRunTimes(const FileDescriptor& schedstat) {
  std::array<char, 96> text{};
  const auto read = schedstat.ReadAt(0, std::as_writable_bytes(std::span(text)));
  RunTimes times;
  if (!read.ok()) return times;
  const char* const end = text.data() + *read;
  const char* const space = std::from_chars(text.data(), end, times.ran_ns).ptr;
  if (space != end) std::from_chars(space + 1, end, times.delay_ns);
  return times;
}

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace

NamedThreads::NamedThreads(std::string name) : name_(std::move(name)) { Find(); }

void NamedThreads::Find() {
  std::set<int> found;
  std::error_code error;
  for (std::filesystem::directory_iterator task("/proc/self/task", error), end;
       !error && task != end; task.increment(error)) {
    if (FirstLine(task->path() / "comm") != name_) continue;
    const std::string number = task->path().filename();
    int id = 0;
    std::from_chars(number.data(), number.data() + number.size(), id);
    found.insert(id);
    if (threads_.contains(id)) continue;
    auto schedstat = FileDescriptor::Open(task->path() / "schedstat", O_RDONLY);
    if (!schedstat.ok()) continue;
    const RunTimes now = ReadRunTimes(*schedstat);
    threads_.emplace(
        id,
        Thread{.schedstat = *std::move(schedstat), .ran_ns = now.ran_ns, .delay_ns = now.delay_ns});
  }
  std::erase_if(threads_, [&](const auto& thread) { return !found.contains(thread.first); });
}

double NamedThreads::Ran() {
  uint64_t sum = 0;
  for (auto& [id, thread] : threads_) {
    const uint64_t now = ReadRunTimes(thread.schedstat).ran_ns;
    if (now > thread.ran_ns) sum += now - thread.ran_ns;
    thread.ran_ns = now;
  }
  return static_cast<double>(sum) * kNanosecond;
}

double NamedThreads::LongestDelay() {
  uint64_t longest = 0;
  for (auto& [id, thread] : threads_) {
    const uint64_t now = ReadRunTimes(thread.schedstat).delay_ns;
    if (now > thread.delay_ns) longest = std::max(longest, now - thread.delay_ns);
    thread.delay_ns = now;
  }
  return static_cast<double>(longest) * kNanosecond;
}

OtherWork::OtherWork() {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &mask)) cores_.insert(core);
    }
  }
  before_ = CoresBusy() - ProcessSeconds();
}

double OtherWork::Seconds() {
  const double now = CoresBusy() - ProcessSeconds();
  const double seconds = std::max(0.0, now - before_);
  before_ = now;
  return seconds;
}

// Lines "cpu3 user nice system idle iowait irq softirq steal ...", in clock ticks.
double OtherWork::CoresBusy() const {
  const double tick = 1.0 / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  std::ifstream file("/proc/stat");
  std::string line;
  double ticks = 0;
  while (std::getline(file, line) && line.starts_with("cpu")) {
    if (line.starts_with("cpu ")) continue;  // the sum over all cores
    std::istringstream fields(line.substr(3));
    int core = -1;
    std::array<double, 8> counted{};
    fields >> core;
    for (double& count : counted) fields >> count;
    const auto [user, nice, system, idle, iowait, irq, softirq, steal] = counted;
    if (cores_.contains(core)) ticks += user + nice + system + irq + softirq + steal;
  }
  return ticks * tick;
}

HeldByQuota::HeldByQuota(std::string cgroup_root)
    : root_(std::move(cgroup_root)), limited_(std::isfinite(CgroupQuota(root_))) {
  Seconds();
}

double HeldByQuota::Seconds() {
  if (!limited_) return 0;
  const double now = CgroupHeldSeconds(root_);
  return std::max(0.0, now - std::exchange(before_, now));
}

}  // namespace ringtail
