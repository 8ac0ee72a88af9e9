// Doorkeeper: stands between a port and gRPC, so that no number of strangers costs more than a
// bounded number of descriptors and of bytes.
//
//   the kernel's queue          at the door                  inside                       ranks
//   of connections     accept   say nothing of use yet;      gRPC has them, nothing is
//   (listen(2))       ────────> at most `room_at_door` ────> proved; `room_inside` ─────> no limit
//                               ours: a descriptor, a time   (unproven.h)         Proved
//                                   │                            │
//                     closed: begins otherwise; has       shut down: not proved
//                     hung up; `limit` is over;           2 x `limit` after it came;
//                     silent for longest of too many      the first of too many
//
// Why: gRPC accepts every connection, spends some 14 KB and a descriptor on each and closes it when
// its own limit is over, 5 s later, even if the other end has gone; and it stops accepting for good
// when accept(2) finds no descriptor. A stranger here costs one descriptor for as long as it is one
// of the last `room_at_door`, and mostly no longer than the accept: what it has sent is looked at
// (MSG_PEEK) and left where it is, so that gRPC later reads it from the beginning. What a rank
// begins with is in opening_bytes.h.
//
// No connection is accepted before Open: until then the kernel holds connections, and ranks wait.
// If descriptors run out, the longest silent at the door goes, and if there is none the newcomer:
// one descriptor is kept in reserve to accept it with, and to close it.
//
// One thread, "rt-door", which sleeps while no connection comes. Thread-safety: any thread.
#ifndef RINGTAIL_DIST_TRANSPORT_DOOR_DOORKEEPER_H_
#define RINGTAIL_DIST_TRANSPORT_DOOR_DOORKEEPER_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/status.h"
#include "dist/transport/door/listening_socket.h"
#include "dist/transport/door/log_limiter.h"
#include "dist/transport/door/unproven.h"
#include "dist/transport/owned_descriptor.h"

struct pollfd;

namespace ringtail {

class Doorkeeper {
 public:
  struct Options {
    std::string address;  // "10.0.0.7:29500", "[fd00::7]:0" (any free port)
    bool tls = false;     // what a rank begins with
    std::chrono::milliseconds limit{5'000};
    std::chrono::milliseconds user_timeout{10'000};  // listening_socket.h
    size_t room_at_door = 128, room_inside = 128;
  };
  // Gets the descriptor of a connection, and closes it some day. On the doorkeeper's thread.
  using LetIn = std::function<void(int descriptor)>;

  // Lets no connection in yet. AlreadyExists: the port is in use.
  static StatusOr<std::unique_ptr<Doorkeeper>> Listen(const Options& options);
  ~Doorkeeper() { Close(); }
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  int port() const { return port_; }
  // Once.
  void Open(LetIn let_in);
  // No connection comes in any more once it returns, and the port is free. One thread at a time,
  // and not from within LetIn.
  void Close();
  // `peer`, as gRPC calls it (ServerContext::peer()), is a rank.
  void Proved(std::string_view peer) { unproven_.Proved(ConnectionNameOfGrpc(peer)); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Visitor {
    enum class State { kSilent, kReady, kGone };
    OwnedDescriptor socket;
    std::string name;
    Clock::time_point deadline;
    // kReady: begins as a rank does, and waits for room inside.
    State state = State::kSilent;
  };
  enum class Accepted { kOne, kNobody, kNoDescriptor };

  Doorkeeper(const Options& options, ListeningSocket listening, OwnedDescriptor wake);
  void Run();
  std::vector<pollfd> WhatToPoll() const;
  Clock::time_point NextDeadline() const;
  void LookAtVisitors(const std::vector<pollfd>& polled);
  void AcceptSome();
  Accepted AcceptOne();
  bool MakeRoomForDescriptor();
  void Examine(Visitor* visitor);
  void LetReadyIn();
  void TurnAway(Visitor* visitor, std::string_view why);
  void TurnAwayOldest(std::string_view why);

  const Options options_;
  const int port_;
  LetIn let_in_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
  Unproven unproven_;

  OwnedDescriptor listening_;
  const OwnedDescriptor wake_;

  // Used by thread_ only.
  OwnedDescriptor reserve_;
  std::list<Visitor> visitors_;             // the longest here first
  Clock::time_point accept_again_;          // not before: there is no descriptor
  std::optional<Clock::time_point> sweep_;  // when to look at unproven_
  LogLimiter turned_away_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DOOR_DOORKEEPER_H_
