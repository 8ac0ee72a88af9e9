// ServerThread: serves one shard to the workers of a world, those of other ranks over a transport.
//
//   worker 1 --header--> Receive posted ahead --> checked --> what it announces is received
//   worker 2 --header--> Receive posted ahead         |
//   own worker ---------------------------------------+-----> ShardService --> replies
//            a function call                            one after the other
//
// There is one Receive for each worker, of the header of its next request; the rest is received into
// memory of the size that the service allows. A worker whose Receive fails is lost: no one waits
// for it any more, and its tickets are back. One that sends what it cannot have been asked for is
// given up.
// Who serves decides who computes: a push of the own worker is applied on its thread, others on
// "rt-ps". Both use as many compute threads, so the bits are the same.
//
// With a replica (Options::feed) an answer is sent once the replica has what it answers. The thread
// of a replica (Options::follows) does what its server has done, and serves workers itself once that
// is dead. A worker that asks a replica has lost the server, perhaps alone: the replica gives the
// server up then, before it answers, so that there is one server at most; what that one has still
// done was not acknowledged.
//
// Threads: one, "rt-ps". Thread-safety: any thread. Memory: a gradient for each push under way.
// Errors: a worker that is lost is told to Options::lost. Destruction waits until all workers have
// left or are lost, up to a time limit, and ends this rank's part of the world after that.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_SERVER_THREAD_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_SERVER_THREAD_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/channel.h"
#include "dist/parameter_server/wire/buffer_pool.h"
#include "dist/parameter_server/wire/message_parts.h"
#include "dist/parameter_server/wire/replica_feed.h"
#include "dist/parameter_server/wire/replica_follower.h"
#include "dist/parameter_server/wire/shard_service.h"
#include "dist/transport/transport.h"

namespace ringtail {

class ServerThread {
 public:
  struct Options {
    std::vector<int> workers;  // their ranks; this one may be among them
    Channel requests, replies;
    int compute_threads = 1;
    std::chrono::milliseconds leave_timeout{30'000};
    // What the own worker is answered; any thread.
    std::function<void(ServerReply reply)> own;
    // Worker `rank` is lost; on rt-ps. May be null.
    std::function<void(int rank, const Status& cause)> lost;
    std::optional<ReplicaPeer> feed;     // this server's replica
    std::optional<ReplicaPeer> follows;  // this is the replica of that server
    // The replica is lost; its server is dead, and this is the server now; on rt-ps. May be null.
    std::function<void(const Status&cause)> replica_lost, took_over;
  };
  // Workers have joined `service`. Both pointers must outlive it.
  ServerThread(Transport* transport, ShardService* service, Options options);
  ~ServerThread();
  ServerThread(const ServerThread&) = delete;
  ServerThread& operator=(const ServerThread&) = delete;

  // Of the own worker; Check allows it.
  void Request(const ServerRequest& request) RT_EXCLUDES(mutex_);
  // While no request is served. Replies, if there are any, are sent.
  using Call = std::function<std::vector<ServerReply>(ShardService* service)>;
  void Run(const Call& call) RT_EXCLUDES(mutex_);

 private:
  struct Worker {
    uint64_t next = 0;  // number of its next request
    EncodedMessage header = {};
    ServerRequest request;
    int missing = 0;                  // parts that are still to come
    bool there = true, lost = false;  // it has not left; it has not said so
  };
  // With the mutex held.
  using Done = std::function<void(const Status& status)>;

  void Loop() RT_EXCLUDES(mutex_);
  bool Ended() RT_EXCLUDES(mutex_);
  void Take(const Completion& completion) RT_EXCLUDES(mutex_);
  CompletionTarget Start(Done done) RT_REQUIRES(mutex_);
  void ReceiveHeader(int rank) RT_REQUIRES(mutex_);
  void OnHeader(int rank) RT_REQUIRES(mutex_);
  SharedBuffer ReceivePart(int rank, MessagePart part, size_t bytes) RT_REQUIRES(mutex_);
  void Serve(int rank) RT_REQUIRES(mutex_);
  void Handle(const ServerRequest& request) RT_REQUIRES(mutex_);
  void Send(std::vector<ServerReply> replies) RT_REQUIRES(mutex_);
  void Lose(int rank, const Status& cause) RT_REQUIRES(mutex_);

  void ConnectReplica() RT_REQUIRES(mutex_);
  // Also once its server has ended as it should: that a worker leaves may be heard after that.
  bool IsReplica() const RT_REQUIRES(mutex_) { return follower_ && !took_over_; }
  void OnQuestion(int rank, MessageKind kind) RT_REQUIRES(mutex_);
  void OnRemoved(int rank, MessageKind kind) RT_REQUIRES(mutex_);
  void GiveUpServer(int worker) RT_REQUIRES(mutex_);
  void Refuse(int rank, const Status& cause) RT_REQUIRES(mutex_);
  void TakeOver(const Status& cause) RT_REQUIRES(mutex_);

  Transport* const transport_;
  const Options options_;
  BufferPool pool_;
  CompletionQueue queue_;
  Mutex mutex_;
  ConditionVariable ended_changed_;
  ShardService* const service_;                          // used with the mutex held
  std::map<int, Worker> workers_ RT_GUARDED_BY(mutex_);  // by rank, but for the own
  std::map<uint64_t, Done> operations_ RT_GUARDED_BY(mutex_);
  std::optional<ReplicaFeed> feed_ RT_GUARDED_BY(mutex_);
  bool feed_ended_ RT_GUARDED_BY(mutex_) = false, took_over_ RT_GUARDED_BY(mutex_) = false;
  std::optional<ReplicaFollower> follower_ RT_GUARDED_BY(mutex_);
  // Of a replica: who is to be removed, and which requests answered, once it is the server.
  std::vector<int> gone_ RT_GUARDED_BY(mutex_), asking_ RT_GUARDED_BY(mutex_);
  std::vector<ServerRequest> own_requests_ RT_GUARDED_BY(mutex_);
  uint64_t next_operation_ RT_GUARDED_BY(mutex_) = 1;
  bool ending_ RT_GUARDED_BY(mutex_) = false, ended_ RT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_SERVER_THREAD_H_
