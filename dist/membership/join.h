// JoinWorld: from "I am rank 3 of 4, rank 0 is at node1:29500" to a world with a transport.
//
//   StatusOr<RankIdentity> identity = DetectRank(flags, environment);
//   StatusOr<JoinedWorld> world = JoinWorld({.identity = *identity, .token = *token,
//                                            .fingerprint = {{"train.batch", "64"}, ...}});
//   world->transport->Send(...);
//
// Every rank calls it; rank 0 also runs the rendezvous (rendezvous_server.h) that all others come
// to, in any order. It returns when every rank is connected to every other, or with one sentence,
// the same on every rank that could be reached, about what is wrong; README.md has them all.
// Errors: Unavailable (a rank is gone or cannot be reached) and DeadlineExceeded (it has not come)
// are about other ranks; any other code is about this one, or about what the ranks disagree on.
// A process that is told to stop (core/stop_signal.h) while it waits ends within 0.2 s, Cancelled.
// Thread-safety: any thread; several worlds in one process are possible (tests do so).
#ifndef RINGTAIL_DIST_MEMBERSHIP_JOIN_H_
#define RINGTAIL_DIST_MEMBERSHIP_JOIN_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/collectives/topology.h"
#include "dist/dist.pb.h"
#include "dist/membership/fingerprint.h"
#include "dist/membership/identity/rank_identity.h"
#include "dist/membership/rendezvous_server.h"
#include "dist/membership/security/security.h"
#include "dist/transport/transport.h"

namespace ringtail {

inline constexpr int kJoinProtocolVersion = 5;  // of messages and frames between ranks
std::string BuildVersion();                     // "0.1.0": of this library

struct JoinOptions {
  RankIdentity identity;
  std::string token;         // job secret; see job_token.h
  SecurityOptions security;  // TLS files, insecure; see security.h
  std::chrono::milliseconds join_timeout{30'000};
  // How long a rank may be silent. The ProgressMonitor watches over that, and says which rank is
  // cut off from which; connections tolerate silence longer, so as not to break first.
  std::chrono::milliseconds silence_limit{0};
  FingerprintFields fingerprint;  // must agree on all ranks
  FingerprintFields about;        // told to all, need not agree (cores, local batch)
  uint32_t generation = 0;        // 0: rank 0 chooses one
  // Version of the code; ranks must agree. Programs give one that differs between any two builds,
  // such as a hash of all sources (apps/version.h). The instruction set is not known here: callers
  // with kernels put it into the fingerprint.
  std::string build = BuildVersion();
  // Ranks with the same key are on one host; empty: host_identity.h.
  std::string host_key;
  DistConfig::Transport transport = DistConfig::GRPC;  // must agree on all ranks
  bool shared_memory = true;  // between ranks of one host; false: all messages use the transport
  // How long the master's name, or the way to it, may be unknown. In a Kubernetes job give it the
  // whole join timeout: there a name appears when its pod runs.
  std::chrono::milliseconds name_timeout{4'000};
  // How long rank 0 stays after a disagreement, to tell ranks that come later.
  std::chrono::milliseconds refusal_grace{3'000};
};

struct JoinedRank {
  std::string host_name;
  int64_t pid = 0;
  std::string address;  // of its data listener
  int host = 0;         // index as in Topology
  FingerprintFields about;
};

struct JoinedWorld {
  int rank = 0;
  uint32_t generation = 0;
  Topology topology;
  std::vector<JoinedRank> ranks;
  std::unique_ptr<RendezvousServer> rendezvous;  // at rank 0: tells latecomers that they are late
  std::unique_ptr<Transport> transport;

  std::string Describe(int rank) const;  // "rank 3 (node7, pid 4711)"
};

StatusOr<JoinedWorld> JoinWorld(const JoinOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_JOIN_H_
