// WorkerLink: a worker's end of its connections to all servers.
//
//   number = link.Send(server, {.kind = kPush, ...}, gradient);     returns at once
//   ... the next gradient is computed ...
//   link.Next(deadline) -> {server, number, kJudged, ...}           replies, in the order of arrival
//
// A gradient is read in place until it is sent, so it is shared with the link. Replies are received
// into memory of the size that this worker expects; what a server sends is checked (messages.h).
// The server on this rank is called directly.
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

  // Before the first Send to the server of this rank.
  void SetOwn(size_t server, ServerThread* thread) { own_[server] = thread; }
  // Where that server puts its replies (ServerThread::Options::own); any thread.
  std::function<void(ServerReply)> own_replies();

  // Of the next request; the first to each server is 0.
  uint64_t next_number(size_t server) const { return next_[server]; }
  uint64_t Send(size_t server, ServerMessage message, SharedBuffer gradient = nullptr,
                SharedBuffer statistics = nullptr);
  // nullopt: there is none by the deadline.
  StatusOr<std::optional<Reply>> Next(Deadline deadline);
  // After kLeave to all servers: waits until what was sent has left and every answer is here, unread.
  // A server ends once its answers have been received: so before the server of this rank ends, which
  // waits for the workers of other ranks as theirs wait for this one.
  void Finish();

 private:
  struct Awaited {
    Reply reply;
    EncodedMessage header = {};
    int missing = 0;  // parts
  };
  struct Operation {
    std::shared_ptr<Awaited> awaited;
    bool is_header = false;
    std::shared_ptr<OutgoingMessage> sent;
  };
  CompletionTarget Start(Operation operation);
  void ReceiveHeader(size_t server, uint64_t number);
  // A reply that is whole, if this completes one.
  StatusOr<std::optional<Reply>> Take(const Completion& completion);
  StatusOr<std::optional<Reply>> OnHeader(const std::shared_ptr<Awaited>& awaited);
  SharedBuffer ReceivePart(const std::shared_ptr<Awaited>& awaited, MessagePart part, size_t bytes);
  std::optional<Reply> TakeOwn() RT_EXCLUDES(mutex_);

  Transport* const transport_;
  const std::vector<Server> servers_;
  std::vector<uint64_t> next_;  // request, by server
  std::map<size_t, ServerThread*> own_;
  BufferPool pool_;
  CompletionQueue queue_;
  std::map<uint64_t, Operation> operations_;
  uint64_t next_operation_ = 1;
  Status status_;
  Mutex mutex_;
  std::deque<ServerReply> inbox_ RT_GUARDED_BY(mutex_);  // of the own server
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_WORKER_LINK_H_
