// ReplicaFollower: a replica's end of the connection to the server of its shard (replica_feed.h). It
// does to its own copy of the shard what the server has done, and says that it has.
//
//   server  --- kPush of worker 2 --->  ShardService::Handle, the answer goes nowhere
//           <------- kHave -----------
//   server  --- kLeave of -1 -------->  the end
//   server  dies                        on_dead: the replica is the server now
//
// Thread-safety: that of the ServerThread that has it, with the mutex held. Errors: a request that
// the server cannot have had, and a header that is none, give the server up: its bits are no longer
// those of the replica.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_REPLICA_FOLLOWER_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_REPLICA_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "core/status.h"
#include "dist/parameter_server/wire/buffer_pool.h"
#include "dist/parameter_server/wire/replica_feed.h"
#include "dist/parameter_server/wire/shard_service.h"
#include "dist/transport/transport.h"

namespace ringtail {

class ReplicaFollower {
 public:
  struct Options {
    ReplicaPeer server;
    StartOperation start;
    std::function<void(const Status& cause)> on_dead;  // once; not after the end
  };
  ReplicaFollower(Transport* transport, ShardService* service, Options options)
      : transport_(transport), service_(service), options_(std::move(options)) {}

  // Receives the first request.
  void Start() { ReceiveHeader(); }
  // The server lives, as far as is known, and has not ended.
  bool follows() const { return follows_; }
  // Somebody else has lost the server: it is not to answer anyone any more. on_dead follows.
  void GiveUp(const Status& cause);

 private:
  void ReceiveHeader();
  void OnHeader();
  Status Check(const ServerMessage& message) const;
  void Apply();
  void OnFailure(const Status& cause);

  Transport* const transport_;
  ShardService* const service_;
  const Options options_;
  BufferPool pool_;
  bool follows_ = true;
  uint64_t next_ = 0;  // number of the next request
  EncodedMessage header_ = {};
  ServerRequest request_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_REPLICA_FOLLOWER_H_
