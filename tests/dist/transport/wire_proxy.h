// WireProxy: a wire between two ranks that a test can damage. The rank that dials is given the
// proxy's address for its peer's:
//
//   rank 1 ── dials ──> WireProxy at 127.0.0.3 ── dials ──> rank 0's listener
//                         every piece of bytes, as it was read, goes through a Damage
//
// One connection passes through it. TCP's own checksums hold on both sides of the proxy: what it
// damages is what a broken memory, network card or middlebox damages.
// Thread-safety: any thread. Threads: two, named "rt-proxy", one for each direction.
#ifndef RINGTAIL_TESTS_DIST_TRANSPORT_WIRE_PROXY_H_
#define RINGTAIL_TESTS_DIST_TRANSPORT_WIRE_PROXY_H_

#include <array>
#include <cstddef>
#include <functional>
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
  // From now on; one call at a time for each direction.
  void Begin(Direction direction, Damage damage) RT_EXCLUDES(mutex_);

 private:
  void Pass(Direction direction) RT_EXCLUDES(mutex_);
  bool Forward(Direction direction, std::vector<std::byte> bytes) RT_EXCLUDES(mutex_);

  std::string address_;
  int listener_ = -1;
  std::array<int, 2> sockets_{-1, -1};  // where bytes of each direction go
  Mutex mutex_;
  std::array<Damage, 2> damage_ RT_GUARDED_BY(mutex_);
  std::thread to_dialler_, to_listener_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_TRANSPORT_WIRE_PROXY_H_
