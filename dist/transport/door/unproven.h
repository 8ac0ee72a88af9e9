// Unproven: the connections that gRPC has been given, and whose other ends have not proved that
// they are ranks. It knows how many there are, and can end them, although they are gRPC's.
//
//   Add(descriptor) ──> let in ── Proved(name) ──────────────> a rank's: not ours to judge
//                          ├───── gRPC has closed it ────────> forgotten
//                          └───── too long, or too many ─────> shut down; then gRPC closes it
//
// gRPC does not say when it closes a connection, and the number of its descriptor may be another
// file's by then. So a connection is known by its number and by the cookie that the kernel gives to
// every socket and never again (SO_COOKIE): as long as the two belong together it is open. To end
// one, the number is duplicated first and the cookie of the duplicate compared, so that no thread
// can change what the number means in between; shutdown(2) works through any descriptor of a
// socket.
//
// gRPC tells us of a proof by the address of the other end; see ConnectionName.
// Thread-safety: any thread. Cost: a system call for each connection that is counted.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_UNPROVEN_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_UNPROVEN_H_

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mutex.h"

namespace ringtail {

// "10.0.0.7:41234", "[fd00::7]:41234": the same for the address that accept(2) gives and for gRPC's
// "ipv4:10.0.0.7:41234", "ipv6:%5Bfd00::7%5D:41234" of it. Empty: it is none of these.
std::string ConnectionName(const sockaddr_storage& peer);
std::string ConnectionNameOfGrpc(std::string_view peer);

class Unproven {
 public:
  using Clock = std::chrono::steady_clock;

  // To be called before gRPC is given `descriptor`.
  void Add(int descriptor, const std::string& name, Clock::time_point deadline) RT_EXCLUDES(mutex_);
  void Proved(const std::string& name) RT_EXCLUDES(mutex_);

  // Shuts down those whose deadline has passed, and forgets those that are closed.
  // Returns when to look again; nothing: there are none.
  std::optional<Clock::time_point> Sweep(Clock::time_point now) RT_EXCLUDES(mutex_);
  // Those that are open, after the last Sweep; also those that gRPC has yet to close.
  size_t count() RT_EXCLUDES(mutex_);
  // One at a time: none as long as gRPC has not closed the last one that was shut down.
  void ShutDownOldest() RT_EXCLUDES(mutex_);

 private:
  struct Connection {
    int descriptor;
    uint64_t cookie;
    std::string name;
    Clock::time_point deadline;
    bool shut_down = false;
  };
  static void ShutDown(Connection* connection);

  Mutex mutex_;
  std::vector<Connection> connections_ RT_GUARDED_BY(mutex_);  // the oldest first
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_UNPROVEN_H_
