// A world over gRPC: one process per rank, one stream per pair of ranks; two between hosts, so that
// urgent messages never wait behind data (grpc_world.h).
//
//   auto listener = GrpcListener::Listen("10.0.0.7:0", options);      every rank, first
//   ... all ranks learn all addresses (rendezvous) ...
//   auto transport = ConnectGrpc(std::move(*listener), world);        every rank, any order
//
// Every pair is connected at the start, not when it first has something to say: what cannot be
// reached is named before the first step and not in the middle of a run, and every rank sees every
// death itself, within the time that the kernel needs to say so (a killed process: at once). It
// costs each rank at most 2 (world - 1) sockets, which is little up to some hundred ranks. Of two
// ranks the higher one dials.
//
// A stranger who dials and does not say a proper hello within seconds is turned away; so are a rank
// of another generation and one that does not know the world's secret. None disturbs the world.
//
// Threads: `io_threads` named "rt-grpc" that read, write and copy to where Receives shall lie; one
// named "rt-door" that lets ranks in (doorkeeper.h); and, when the world ends, one named
// "rt-grpc-close". A Send is written by the thread that calls it, if nothing else is being written
// to that peer. No gRPC type appears here.
#ifndef RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
#define RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_TRANSPORT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/transport/transport.h"

namespace ringtail {

// Mutual TLS: the contents of PEM files. All of them, or none (plain TCP).
struct GrpcTls {
  std::string certificate, key;  // what this rank shows, and proves to be its own
  std::string authority;         // who must have signed the certificates of peers
  bool empty() const { return certificate.empty(); }
};

struct GrpcOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  // A connection that brings nothing for so long is asked whether it lives, and is lost if it does
  // not answer for so long; it is lost, too, if what was sent has not arrived for as long
  // (TCP_USER_TIMEOUT, which gRPC sets to the latter). For dead hosts and cut cables: of a dead
  // process the kernel tells. gRPC asks only where its question does not wait behind data: over a
  // network, whoever has dialled, on the urgent connection; the other end's kernel does it there.
  std::chrono::milliseconds keepalive_time{5'000}, keepalive_timeout{10'000};
  // How much may be on its way to this rank before it says so: much if it comes over a network,
  // little from the same machine. None: as the address says.
  std::optional<bool> over_network;
  int io_threads = 1;
  size_t peers = 64;  // ranks that may dial at the same time; strangers have room beside them
  GrpcTls tls;
};

// A socket that peers can dial.
class GrpcListener {
 public:
  // "127.0.0.1:0" (any free port), "[::1]:4000", "unix:/run/user/1000/rank0.sock".
  static StatusOr<std::unique_ptr<GrpcListener>> Listen(const std::string& address,
                                                        const GrpcOptions& options);
  virtual ~GrpcListener() = default;

  // As given, with the port that is really used.
  virtual const std::string& address() const = 0;
};

struct GrpcWorld {
  int rank = 0;
  uint32_t generation = 0;             // of the world; the same on every rank
  std::vector<std::string> addresses;  // of every rank's listener, by rank
  std::string secret;  // of this generation; hellos prove that ranks know it. Empty: none needed
  // By rank: ranks with the same key, if it is not empty, exchange messages through shared memory
  // (shared_segment.h ThisHostKey). Empty: none do.
  std::vector<std::string> hosts;
};

// Waits until this rank is connected to every other. DeadlineExceeded with the ranks and addresses
// that are missing after connect_timeout; FailedPrecondition if a peer turns us away; Cancelled soon
// after the process was told to stop (core/stop_signal.h).
StatusOr<std::unique_ptr<Transport>> ConnectGrpc(std::unique_ptr<GrpcListener> listener,
                                                 const GrpcWorld& world);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_GRPC_GRPC_TRANSPORT_H_
