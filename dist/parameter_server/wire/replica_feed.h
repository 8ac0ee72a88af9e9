// ReplicaFeed: a server's end of the connection to the replica of its shard. Every request that the
// server has had goes to the replica, in the same order; what the server answers is sent once the
// replica has the request. So whatever a worker has heard of, the replica has, too.
//
//   worker        server                    replica (replica_follower.h)
//   kPush    ->   applied
//                 Forward  ------ 7 ---->   applied, with the same bits
//                 held: kJudged             Have
//            <-   sent     <----- 7 -----
//
// This is chain replication (van Renesse and Schneider 2004, "Chain Replication for Supporting High
// Throughput and Availability", section 2) with two links, where the head answers. Cost: each push
// travels once more, and each answer takes a way to the replica and back longer. Once the replica is
// lost the server answers without it; but for rank 0, whose loss is the end of the job.
// Thread-safety: that of its server, which calls it with its mutex held; completions, too.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_REPLICA_FEED_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_REPLICA_FEED_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "core/status.h"
#include "dist/channel.h"
#include "dist/parameter_server/wire/message_parts.h"
#include "dist/parameter_server/wire/shard_service.h"
#include "dist/transport/transport.h"

namespace ringtail {

// A server and its replica.
struct ReplicaPeer {
  int rank = 0;  // the other's
  Channel forwards, acknowledgements;
};

// Starts an operation of the server's thread, which calls `done` with the mutex held.
using StartOperation =
    std::function<CompletionTarget(std::function<void(const Status& status)> done)>;

class ReplicaFeed {
 public:
  struct Options {
    ReplicaPeer replica;
    StartOperation start;
    std::function<void(std::vector<ServerReply> replies)> send;
    std::function<void(const Status& cause)> lost;  // the replica
  };
  ReplicaFeed(Transport* transport, Options options)
      : transport_(transport), options_(std::move(options)) {}

  void Forward(const ServerRequest& request, std::vector<ServerReply> replies);
  // All workers have left: nothing follows. Once.
  void End();

 private:
  struct Held {
    bool acknowledged = false;
    std::vector<ServerReply> replies;
  };
  void Send(const ServerMessage& message, SharedBuffer gradient);
  void Receive(uint64_t number);
  void Release();
  void Lose(const Status& cause);

  Transport* const transport_;
  const Options options_;
  bool there_ = true;
  uint64_t next_ = 0;  // number of the next request
  uint64_t first_held_ = 0;
  std::deque<Held> held_;  // replies to the requests first_held_ ..
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_REPLICA_FEED_H_
