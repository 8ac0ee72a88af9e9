// WireProxy: a wire between two ranks that a test can damage. The rank that dials is given the
// proxy's address for its peer's:
//
//   rank 1 ── dials ──> WireProxy at 127.0.0.3 ── dials ──> rank 0's listener
//                         every piece of bytes, as it was read, goes through a Damage
//
// All connections of the two ranks pass through it: the first that lives carries data (and is the
// one that gets damaged), a second one urgent messages. On a busy machine gRPC may give one up
// before it is used, and dial again. TCP's own checksums hold on both sides of the proxy: what it
// damages is what a broken memory, network card or middlebox damages.
//
// It may be slow, too: then all connections share its speed, and what waits is in the ranks'
// queues. Thread-safety: any thread. Threads: named "rt-proxy", one that accepts, two for each
// connection.
#ifndef RINGTAIL_TESTS_DIST_TRANSPORT_WIRE_PROXY_H_
#define RINGTAIL_TESTS_DIST_TRANSPORT_WIRE_PROXY_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"

namespace ringtail {

class WireProxy {
 public:
  enum Direction { kToListener = 0, kToDialler = 1 };
  // What becomes of the bytes of one piece, at most kPieceBytes. False: the connection is cut after
  // them.
  using Damage = std::function<bool(std::vector<std::byte>* bytes)>;
  static constexpr size_t kPieceBytes = size_t{64} << 10;

  // Listens at a free port of `ip`; `target` is "127.0.0.1:4000".
  WireProxy(const std::string& ip, const std::string& target);
  ~WireProxy();  // the ranks have ended
  WireProxy(const WireProxy&) = delete;
  WireProxy& operator=(const WireProxy&) = delete;

  const std::string& address() const { return address_; }
  // From now on, once the ranks are connected; one call at a time for each direction.
  void Begin(Direction direction, Damage damage) RT_EXCLUDES(mutex_);
  // In each direction, from now on.
  void Slow(int64_t bytes_per_second) RT_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    bool ended = false;
    std::array<int, 2> sockets{-1, -1};  // where bytes of each direction go
    std::thread to_dialler, to_listener;
  };

  int Dial() const;
  void Accept() RT_EXCLUDES(mutex_);  // body of acceptor_
  void Pass(Connection* connection, Direction direction) RT_EXCLUDES(mutex_);
  bool Forward(const Connection& connection, Direction direction, std::vector<std::byte> bytes)
      RT_EXCLUDES(mutex_);
  void WaitForTurn(Direction direction, size_t bytes) RT_EXCLUDES(mutex_);

  const std::string target_;
  std::string address_;
  int listener_ = -1;
  Mutex mutex_;
  bool ending_ RT_GUARDED_BY(mutex_) = false;
  int64_t bytes_per_second_ RT_GUARDED_BY(mutex_) = 0;  // 0: as they come
  std::array<Clock::time_point, 2> free_at_ RT_GUARDED_BY(mutex_);
  std::array<Damage, 2> damage_ RT_GUARDED_BY(mutex_);
  std::list<Connection> connections_ RT_GUARDED_BY(mutex_);
  const Connection* data_ RT_GUARDED_BY(mutex_) = nullptr;  // of connections_; null before Begin
  std::thread acceptor_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_TRANSPORT_WIRE_PROXY_H_
