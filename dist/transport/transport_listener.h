// TransportListener: where peers reach this rank, and how a world becomes a transport. One kind of
// transport is one TransportListener; transports.h chooses by config.
//
//   auto listener = Listen(kind, "10.0.0.7", options);              every rank, first
//   ... all ranks learn the addresses of all (dist/membership/) ...
//   auto transport = (*listener)->Connect(peers);                    every rank, in any order
//
// No type of any wire appears here.
// Thread-safety: a listener belongs to one thread; observers are called on any thread.
#ifndef RINGTAIL_DIST_TRANSPORT_TRANSPORT_LISTENER_H_
#define RINGTAIL_DIST_TRANSPORT_TRANSPORT_LISTENER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/transport/transport.h"

namespace ringtail {

// Mutual TLS: the contents of PEM files. All of them, or none (plain TCP).
struct TlsIdentity {
  std::string certificate, key;  // what this rank shows, and proves to be its own
  std::string authority;         // must have signed the certificates of peers
  bool empty() const { return certificate.empty(); }
};

// What a wire needs to know before it listens. A wire without sockets of its own ignores most.
struct TransportOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  // A connection that brings nothing for keepalive_time is probed, and is lost if it does not
  // answer within keepalive_timeout; it is also lost if what was sent is not acknowledged for as
  // long (TCP_USER_TIMEOUT). This finds dead hosts and cut cables: the kernel reports dead
  // processes.
  std::chrono::milliseconds keepalive_time{5'000}, keepalive_timeout{10'000};
  // How much may be on its way to this rank before it acknowledges: much over a network, little
  // within a machine. None: as the address says.
  std::optional<bool> over_network;
  int io_threads = 1;
  size_t peers = 64;  // ranks that may dial at the same time; strangers have room beside them
  TlsIdentity tls;
};

// Which ranks a world has: what a rank must know to connect to all others. The same on every rank
// but for `rank`.
struct PeerTable {
  int rank = 0;                        // this one
  uint32_t generation = 0;             // of the world
  std::vector<std::string> addresses;  // of every rank's listener, by rank
  std::string secret;  // of this generation; ranks prove that they know it. Empty: none needed
  // By rank: ranks with the same key, if it is not empty, are on one host and can share memory
  // (dist/membership/identity/host_identity.h). Empty: no ranks can.
  std::vector<std::string> memory_keys;

  int world_size() const { return static_cast<int>(addresses.size()); }
  bool SharesMemory(int peer) const {
    return peer != rank && !memory_keys.empty() && !memory_keys[rank].empty() &&
           memory_keys[peer] == memory_keys[rank];
  }
  // They share memory, or listen at ports of the same address, or at two files: their traffic stays
  // in the memory of one machine. Both ends get the same answer.
  bool OnOneHost(int peer) const {
    const auto host = [this](int of) { return addresses[of].substr(0, addresses[of].rfind(':')); };
    return SharesMemory(peer) || host(peer) == host(rank);
  }
};

// Told what a transport learns besides messages, without a lock of the transport held.
class TransportObserver {
 public:
  virtual ~TransportObserver() = default;
  // The peer has left in peace: it sends nothing more.
  virtual void OnPeerLeft(int peer) = 0;
  // The peer is lost by itself (Transport::TolerateLosses). Once for each.
  virtual void OnPeerLost(int peer, const Status& cause) = 0;
  // This rank's part in the world has ended, with the transport's first error or its destruction.
  // Once.
  virtual void OnEnd(const Status& cause) = 0;
};

class TransportListener {
 public:
  virtual ~TransportListener() = default;

  // What peers need to reach this rank, as it goes into PeerTable::addresses.
  virtual const std::string& address() const = 0;

  // Waits until this rank is connected to every other. DeadlineExceeded with the ranks and
  // addresses that are missing after connect_timeout; FailedPrecondition if a peer turns this rank
  // away; Cancelled soon after the process was told to stop (core/stop_signal.h). Once. `observer`,
  // if any, must outlive the transport.
  virtual StatusOr<std::unique_ptr<Transport>> Connect(const PeerTable& peers,
                                                       TransportObserver* observer) = 0;
  StatusOr<std::unique_ptr<Transport>> Connect(const PeerTable& peers) {
    return Connect(peers, nullptr);
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_TRANSPORT_LISTENER_H_
