// WorkerLink: a worker's end of its connections to all servers.
//
//   number = link.Send(server, {.kind = kPush, ...}, gradient);     returns at once
//   ... the next gradient is computed ...
//   link.Next(deadline) -> {server, number, kJudged, ...}           replies, in the order of arrival
//
// A gradient is read in place until it is sent, so it is shared with the link. Replies are received
// into memory of the size that this worker expects; what a server sends is checked (messages.h).
// The server on this rank is called directly.
//
// A server that dies is replaced by its replica, if it has one: what it has not answered is asked
// again there, under numbers that begin anew, and the answers bear the old ones.
//
//   server on rank 2:  0 kPull  1 kPush  2 kPull  3 kPush    1 is answered, 2 and 3 are not
//   rank 2 dies
//   its replica:                         0 kPull  1 kPush    answers to 2 and 3
//
// Errors: those of the transport, final: every later call of Next returns the first. DataLoss, which
// ends this rank's part of the world, if a server sends what it was not asked for.
// Thread-safety: one thread, but for own_replies(). Destruction ends as Finish does.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_LINK_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_LINK_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/mutex.h"
#include "core/status.h"
#include "dist/channel.h"
#include "dist/parameter_server/wire/buffer_pool.h"
#include "dist/parameter_server/wire/message_parts.h"
#include "dist/parameter_server/wire/server_thread.h"
#include "dist/transport/transport.h"

namespace ringtail {

class WorkerLink {
 public:
  struct Server {
    int rank = 0;
    Channel requests, replies;
    size_t weight_bytes = 0, statistics_bytes = 0;  // of kWeights; at most, if `coded`
    bool coded = false;                             // pull_coding.h
    size_t state_bytes = 0;                         // of kState
    struct Replica {
      int rank = 0;
      Channel requests, replies;
    };
    std::optional<Replica> replica;  // none: its death is this worker's end
  };
  struct Reply {
    size_t server = 0;
    uint64_t number = 0;
    ServerMessage message;
    SharedBuffer weights, statistics;
  };

  // `transport` must outlive it.
  WorkerLink(Transport* transport, std::vector<Server> servers);
  ~WorkerLink();
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;

  // Before the first Send: a server on this rank, and a replica on this rank.
  void SetOwn(size_t server, ServerThread* thread) { own_[server] = thread; }
  void SetOwnReplica(size_t server, ServerThread* thread) { own_replicas_[server] = thread; }
  // Where these put their replies (ServerThread::Options::own); any thread.
  std::function<void(ServerReply)> own_replies(size_t server);

  // Of the next request; the first to each server is 0.
  uint64_t next_number(size_t server) const { return next_[server]; }
  uint64_t Send(size_t server, ServerMessage message, SharedBuffer gradient = nullptr,
                SharedBuffer statistics = nullptr);
  // nullopt: there is none by the deadline.
  StatusOr<std::optional<Reply>> Next(Deadline deadline);
  // Nothing follows: all servers, and their replicas, are told.
  void Leave();
  // After Leave: waits until what was sent has left and every answer is here, unread.
  // A server ends once its answers have been received: so before the server of this rank ends, which
  // waits for the workers of other ranks as theirs wait for this one.
  void Finish();

 private:
  struct Awaited {
    Reply reply;
    uint64_t wire_number = 0;
    EncodedMessage header = {};
    int missing = 0;  // parts
  };
  struct Operation {
    size_t server = 0;
    int rank = 0;
    std::shared_ptr<Awaited> awaited;
    bool is_header = false;
    std::shared_ptr<OutgoingMessage> sent;
  };
  struct Question {
    ServerMessage message;
    SharedBuffer gradient, statistics;
  };
  CompletionTarget Start(Operation operation);
  void SendNow(size_t server, uint64_t number, const Question& question);
  void ReceiveHeader(size_t server, uint64_t number, uint64_t wire_number);
  Status OnFailure(const Operation& operation, const Status& cause);
  void UseReplica(size_t server);
  // A reply that is whole, if this completes one.
  StatusOr<std::optional<Reply>> Take(const Completion& completion);
  StatusOr<std::optional<Reply>> OnHeader(const std::shared_ptr<Awaited>& awaited);
  SharedBuffer ReceivePart(const std::shared_ptr<Awaited>& awaited, MessagePart part, size_t bytes);
  std::optional<Reply> Answered(Reply reply);
  std::optional<Reply> TakeOwn() RT_EXCLUDES(mutex_);

  Transport* const transport_;
  std::vector<Server> servers_;      // a replica takes the place of a dead one
  std::vector<uint64_t> next_;       // request, by server
  std::vector<uint64_t> next_wire_;  // the same, as the server of today counts
  std::map<size_t, ServerThread*> own_, own_replicas_;
  // By server and number: what was not answered. By server: it was told last that this is away.
  std::vector<std::map<uint64_t, Question>> unanswered_;
  std::vector<bool> away_;
  bool leaving_ = false;
  BufferPool pool_;
  CompletionQueue queue_;
  std::map<uint64_t, Operation> operations_;
  uint64_t next_operation_ = 1;
  Status status_;
  Mutex mutex_;
  std::deque<Reply> inbox_ RT_GUARDED_BY(mutex_);  // of own servers
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_LINK_H_
