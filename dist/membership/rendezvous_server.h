// RendezvousServer: where ranks come to find each other. Runs in the process of rank 0, whose own
// JoinWorld comes to it like every other rank's.
//
// It collects ranks in a Roster until all are there, has them open their data listeners, and tells
// all ranks about all ranks. A disagreement, or a rank that is missing when `join_timeout` is over,
// ends it for all, with the same sentence for each. Strangers and wrong tokens are turned away;
// nothing that they do reaches the roster. It stays open for as long as the world exists, so that a
// rank that comes late is told so.
//
// One thread, "rt-join", does everything, behind the doorkeeper's "rt-door"
// (../transport/doorkeeper.h); no stranger can make it wait.
// Thread-safety: as said at each function.
#ifndef RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_SERVER_H_
#define RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_SERVER_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "dist/membership/identity/rank_facts.h"
#include "dist/transport/transport_listener.h"

namespace ringtail {

class RendezvousServer {
 public:
  struct Options {
    std::string address;  // "10.0.0.7", of this host
    int port = 0;
    TransportOptions wire;
    std::string token;
    RankFacts facts;  // of rank 0; its generation is the world's
    std::chrono::milliseconds join_timeout{30'000};
  };
  // AlreadyExists, with the process that has it if that can be found out, if the port is in use.
  static StatusOr<std::unique_ptr<RendezvousServer>> Start(const Options& options);
  virtual ~RendezvousServer() = default;

  // After it has ended with an error: waits until every rank has been told, but no longer than
  // `grace`. Any thread.
  virtual void AwaitRefusals(std::chrono::milliseconds grace) = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_RENDEZVOUS_SERVER_H_
