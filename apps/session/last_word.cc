#include "apps/session/last_word.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "core/logging.h"
#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

}  // namespace

void WatchedProgress::Watch(const Progress* progress) {
  MutexLock lock(&mutex_);
  progress_ = progress;
}

std::optional<Progress::State> WatchedProgress::Read() const {
  MutexLock lock(&mutex_);
  if (progress_ == nullptr) return std::nullopt;
  return progress_->Read();
}

bool LastWord::IsOver(const std::optional<Progress::State>& training, TimePoint now) {
  std::optional<uint64_t> counter;
  if (training) counter = training->counter;
  if (counter != counter_) moved_at_ = now;
  counter_ = counter;
  return now - begin_ >= limits_.most || now - moved_at_ >= LimitOf(training);
}

std::chrono::milliseconds LastWord::LimitOf(const std::optional<Progress::State>& training) const {
  if (!training || hangs_ || WaitsForOthers(training->phase)) return limits_.returning;
  const bool long_phase =
      training->phase == Phase::kEvaluation || training->phase == Phase::kCheckpoint;
  return long_phase ? limits_.most : limits_.silence;
}

void EndUnlessItReturns(LastWord last, std::shared_ptr<const WatchedProgress> training,
                        int exit_code, std::string message) {
  std::thread([last, training = std::move(training), exit_code,
               message = std::move(message)]() mutable {
    SetThreadName("rt-last-word");
    while (!last.IsOver(training->Read(), std::chrono::steady_clock::now())) {
      std::this_thread::sleep_for(kBetweenLooks);
    }
    LogError(message);
    _exit(exit_code);
  }).detach();
}

}  // namespace ringtail
