// Waits for several file descriptors at a time (poll(2)) and runs their callbacks, one after the
// other, in one thread; the launcher and its agents have no other threads.
// Thread-safety: none. Errors: a failure of poll is a bug of ours and ends the process.
#ifndef RINGTAIL_APPS_LAUNCH_POLL_LOOP_H_
#define RINGTAIL_APPS_LAUNCH_POLL_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace ringtail {

class PollLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Callback = std::function<void()>;

  // Calls `callback` whenever one of `events` (POLLIN, POLLOUT) occurs on `file` or its other end
  // is closed. A file has one callback; watching it again replaces the callback.
  void Watch(int file, int16_t events, Callback callback);
  void Unwatch(int file);  // also from a callback; no error if it is not watched

  // Waits for events until `deadline` (none: without limit) and runs the callbacks of all events.
  // May return early without events.
  void RunOnce(std::optional<Clock::time_point> deadline);

 private:
  struct Entry {
    int16_t events;
    std::shared_ptr<Callback> callback;
  };
  std::map<int, Entry> entries_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_POLL_LOOP_H_
