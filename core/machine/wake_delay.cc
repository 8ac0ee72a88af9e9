#include "core/machine/wake_delay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "core/machine/thread_budget.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds, spread evenly over 2 to 12 ms by the golden ratio, so that no period of the kernel's fits.
double SleepOf(int64_t index) {
  constexpr double kShortest = 2e-3, kRange = 10e-3, kGoldenRatio = 0.6180339887498949;
  double whole = 0;
  return kShortest + kRange * std::modf(static_cast<double>(index) * kGoldenRatio, &whole);
}

Clock::time_point After(Clock::time_point now, double seconds) {
  return now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

double MeanBeyondLeast(const std::vector<double>& late) {
  if (late.empty()) return 0;
  const double sum = std::accumulate(late.begin(), late.end(), 0.0);
  return sum / static_cast<double>(late.size()) - *std::ranges::min_element(late);
}

WakeDelay::WakeDelay() : sleeper_([this] { Run(); }) {}

WakeDelay::~WakeDelay() {
  {
    const MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopped_.NotifyOne();
  sleeper_.join();
}

double WakeDelay::Mean() const {
  const MutexLock lock(&mutex_);
  return MeanBeyondLeast(late_);
}

void WakeDelay::Run() {
  SetThreadName("rt-wake-delay");
  const MutexLock lock(&mutex_);
  for (int64_t index = 0; !stop_; ++index) {
    const Clock::time_point wake = After(Clock::now(), SleepOf(index));
    if (stopped_.WaitUntil(&mutex_, wake)) continue;  // told to stop, or for no reason
    late_.push_back(std::chrono::duration<double>(Clock::now() - wake).count());
  }
}

}  // namespace ringtail
