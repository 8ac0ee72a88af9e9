#include "core/machine/core_watch.h"

#include <chrono>
#include <utility>

#include "core/machine/thread_budget.h"
#include "core/parallel_for.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::milliseconds kInterval{50};
constexpr std::chrono::seconds kFullLook{1};  // at the cores, and at the list of threads

}  // namespace

CoreWatch::CoreWatch(std::function<void(const std::string&)> tell, const std::string& cgroup_root)
    : tell_(std::move(tell)),
      team_(NumComputeThreads()),
      quota_binds_(CgroupQuota(cgroup_root).cores < team_),
      held_(cgroup_root),
      sharing_(AffinityCores(), CgroupQuota(cgroup_root).cores) {
  thread_ = std::thread([this] { Run(); });
}

CoreWatch::~CoreWatch() {
  {
    MutexLock lock(&mutex_);
    ended_ = true;
  }
  ended_changed_.NotifyAll();
  thread_.join();
}

bool CoreWatch::WaitForNext() {
  const auto next = Clock::now() + kInterval;
  MutexLock lock(&mutex_);
  while (!ended_ && Clock::now() < next) ended_changed_.WaitUntil(&mutex_, next);
  return !ended_;
}

void CoreWatch::SetShortSpin(bool wanted) {
  if (team_ < 2 || wanted == (short_spin_ != nullptr)) return;
  short_spin_ = wanted ? std::make_unique<ShortSpin>(team_) : nullptr;
}

void CoreWatch::Run() {
  SetThreadName("rt-core-watch");
  SetShortSpin(quota_binds_);
  auto looked = Clock::now(), looked_fully = looked;
  while (WaitForNext()) {
    const auto now = Clock::now();
    if (delays_.threads() < team_) delays_.FindThreads();  // OpenMP starts them for the first loop
    CoreSharing::Use use{.elapsed = Seconds(now - looked).count(), .delay = delays_.Longest()};
    looked = now;
    if (now - looked_fully >= kFullLook) {
      looked_fully = now;
      delays_.FindThreads();
      use.others = others_.Seconds();
      use.held = held_.Seconds();
    }
    sharing_.Update(use);
    SetShortSpin(quota_binds_ || sharing_.delayed());
    if (const auto notice = sharing_.Notice(); notice && tell_) tell_(*notice);
  }
}

}  // namespace ringtail
