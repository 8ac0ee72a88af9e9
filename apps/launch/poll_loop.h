// Waits for several file descriptors at a time (poll(2)) and calls back: all that the launcher and
// its agents do happens in one thread, one callback after the other.
// Thread-safety: none. Errors: a poll that fails for good is our own bug and ends the process.
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

  // Calls `callback` whenever one of `events` (POLLIN, POLLOUT) or the end of the other side shows
  // on `file`. A file has one callback: watching it again replaces that.
  void Watch(int file, int16_t events, Callback callback);
  void Unwatch(int file);  // from a callback, too; no error if it is not watched

  // Waits for events until `deadline` (none: for ever), and calls back for all there are. It may
  // return early for no reason.
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
