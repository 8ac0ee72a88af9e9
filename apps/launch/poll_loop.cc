#include "apps/launch/poll_loop.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "core/check.h"

namespace ringtail {
namespace {

int MillisecondsUntil(std::optional<PollLoop::Clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline - PollLoop::Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

void PollLoop::Watch(int file, int16_t events, Callback callback) {
  entries_[file] = {events, std::make_shared<Callback>(std::move(callback))};
}

void PollLoop::Unwatch(int file) { entries_.erase(file); }

void PollLoop::RunOnce(std::optional<Clock::time_point> deadline) {
  std::vector<pollfd> files;
  std::vector<std::shared_ptr<Callback>> callbacks;
  for (const auto& [file, entry] : entries_) {
    files.push_back({file, entry.events, 0});
    callbacks.push_back(entry.callback);
  }
  const int ready = poll(files.data(), files.size(), MillisecondsUntil(deadline));
  RT_CHECK(ready >= 0 || errno == EINTR, "poll failed");
  if (ready <= 0) return;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].revents == 0) continue;
    // An earlier callback may have removed or replaced this one.
    const auto entry = entries_.find(files[i].fd);
    if (entry != entries_.end() && entry->second.callback == callbacks[i]) (*callbacks[i])();
  }
}

}  // namespace ringtail
