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
constexpr std::chrono::milliseconds kFullLook{1000};  // at the cores, and at the list of threads

}  // namespace

CoreWatch::CoreWatch(std::function<void(const std::string&)> tell, const std::string& cgroup_root)
    : tell_(std::move(tell)),
      team_(NumComputeThreads()),
      quota_binds_(CgroupQuota(cgroup_root) < team_),
      team_threads_(ThreadName()),
      held_(cgroup_root),
      sharing_(AffinityCores(), CgroupQuota(cgroup_root)) {
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
  const bool may_spin = team_ > 1 && !quota_binds_;
  const auto next = Clock::now() + (may_spin ? kInterval : kFullLook);
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
    // OpenMP starts them for the first loop.
    if (team_threads_.size() < team_) team_threads_.Find();
    CoreSharing::Use use{.elapsed = Seconds(now - looked).count(),
                         .delay = team_threads_.LongestDelay()};
    looked = now;
    if (now - looked_fully >= kFullLook) {
      looked_fully = now;
      team_threads_.Find();
      use.others = others_.Seconds();
      use.held = held_.Seconds();
    }
    sharing_.Update(use);
    SetShortSpin(quota_binds_ || sharing_.delayed());
    if (const auto notice = sharing_.Notice(); notice && tell_) tell_(*notice);
  }
}

}  // namespace ringtail
