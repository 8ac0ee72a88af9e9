#include "dist/parameter_server/clock_table.h"

#include <algorithm>

#include "core/check.h"

namespace ringtail {

ClockTable::ClockTable(int64_t bound, int stragglers) : bound_(bound), stragglers_(stragglers) {
  RT_CHECK(bound >= 0 && stragglers >= 0, "a bound and a number of stragglers");
}

void ClockTable::Join(int worker) {
  RT_CHECK(!Has(worker), "a worker joins once");
  clocks_[worker] = min_;
  ++counts_[min_];
}

void ClockTable::Remove(int worker) {
  const auto at = clocks_.find(worker);
  if (at == clocks_.end()) return;
  Leave(at->second);
  clocks_.erase(at);
  Raise();
}

void ClockTable::Tick(int worker) { Move(worker, clock(worker) + 1); }

void ClockTable::CatchUp(int worker) { Move(worker, std::max(clock(worker) + 1, min_)); }

bool ClockTable::MayStart(int worker) const { return clock(worker) - min_ <= bound_; }

int64_t ClockTable::clock(int worker) const {
  const auto at = clocks_.find(worker);
  RT_CHECK(at != clocks_.end(), "a worker that has joined and was not removed");
  return at->second;
}

std::vector<int> ClockTable::workers() const {
  std::vector<int> workers;
  for (const auto& [worker, clock] : clocks_) workers.push_back(worker);
  return workers;
}

std::vector<int> ClockTable::Slowest() const {
  std::vector<int> slowest;
  for (const auto& [worker, clock] : clocks_) {
    if (clock <= min_) slowest.push_back(worker);
  }
  return slowest;
}

void ClockTable::Move(int worker, int64_t clock) {
  int64_t& place = clocks_.at(worker);
  Leave(place);
  place = clock;
  ++counts_[clock];
  Raise();
}

void ClockTable::Leave(int64_t clock) {
  const auto at = counts_.find(clock);
  if (--at->second == 0) counts_.erase(at);
}

// To the clock that all workers but the stragglers have reached.
void ClockTable::Raise() {
  int left = std::min<int>(stragglers_, static_cast<int>(clocks_.size()) - 1);
  for (const auto& [clock, workers] : counts_) {
    left -= workers;
    if (left >= 0) continue;
    min_ = std::max(min_, clock);
    return;
  }
}

}  // namespace ringtail
