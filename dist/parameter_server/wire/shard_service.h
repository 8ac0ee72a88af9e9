// ShardService: what a server answers to the requests of its workers. It has no thread and no
// socket: it is told what has arrived (messages.h), and says what is to be sent.
//
//   worker A   kPull              Handle -> kWeights to A, or nothing yet: A is too far ahead
//   worker B   kPush, gradient    Handle -> kJudged to B; kWeights to A, which waits no longer
//   worker B   kAsk               Handle -> kTicket to B            the first server alone:
//   worker A   kPush, refused     Handle -> kJudged to A            its desk has the tickets, and it
//   worker A   kReturn            Handle ->                         has the running statistics
//   worker C   lost               Remove -> what others waited for
//   worker 0   kSnapshot          Handle -> kState, once it has all pushes that the first server had
//
// A replica's service is told the same in the same order, and what it says goes nowhere: so it has
// the same bits. Once its server is dead (TakeOver) workers ask again whatever was not answered, and
// are answered; a push that it has had already is judged as it was (`clock` says which).
//
// Accepted is used: a push that the first server takes uses its ticket at once, whatever becomes of
// its worker. One that it refuses leaves the ticket with the worker, which returns it once it knows
// what the other servers say (kReturn): its rows come again if all of them have refused.
//
// Errors: DataLoss if a request is not what this server can have been sent; nothing has changed
// then, and its worker is to be removed. Thread-safety: none. Cost: that of ServerShard.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_SHARD_SERVICE_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_SHARD_SERVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"
#include "dist/parameter_server/pull_coding.h"
#include "dist/parameter_server/server_shard.h"
#include "dist/parameter_server/wire/buffer_pool.h"
#include "dist/parameter_server/wire/messages.h"
#include "dist/parameter_server/wire/push_coding.h"
#include "dist/parameter_server/wire/ticket_desk.h"
#include "dist/parameter_server/wire/update_counts.h"
#include "dist/parameter_server/wire/worker_statistics.h"

namespace ringtail {

struct ServerRequest {
  int worker = 0;
  uint64_t number = 0;
  ServerMessage message;
  SharedBuffer gradient, statistics;  // null: none
};
struct ServerReply {
  int worker = 0;
  uint64_t number = 0;  // of the request
  ServerMessage message;
  SharedBuffer weights, statistics;
};

class ShardService {
 public:
  struct Options {
    ServerShard* shard = nullptr;
    TicketDesk* desk = nullptr;              // null: not the first server
    WorkerStatistics* statistics = nullptr;  // the same
    // Workers begin with the mean of the statistics at their version, and not with their own.
    bool shares_statistics = false;
    // What a snapshot has, always of the same sizes.
    std::vector<std::span<const float>> state;
    std::function<void()> before_snapshot = nullptr;  // brings `state` up to date
    const PushCoding* coding = nullptr;               // of gradients; null: they come as floats
    PullEncoder* pulls = nullptr;                     // of weights; null: they leave as floats
  };
  // All pointers of `options` must outlive it.
  explicit ShardService(const Options& options);

  // 0 rows: it computes nothing, and asks only how far the others are.
  void Join(int worker, int64_t rows_of_a_ticket);
  bool Has(int worker) const { return pushes_.contains(worker); }
  // Whether a request with this header can be one of `worker`, before what it announces is received.
  Status Check(int worker, const ServerMessage& message) const;
  // Of one that Check allows.
  std::vector<ServerReply> Handle(const ServerRequest& request);
  // The worker is lost, or has left.
  std::vector<ServerReply> Remove(int worker);
  // The service was a replica's, and is the server's now.
  void TakeOver();
  // The next round of tickets.
  std::vector<ServerReply> Open(int64_t end);
  // There is no further one. `last`: kEnd, but for the signal.
  std::vector<ServerReply> Close(const ServerMessage& last);
  // By worker, 0 for one that is not there: what a snapshot is to have.
  std::vector<int64_t> Pushes(int workers) const;

  size_t weight_bytes() const { return options_.shard->elements() * sizeof(float); }
  size_t push_bytes() const {
    return options_.coding != nullptr ? options_.coding->bytes() : weight_bytes();
  }
  size_t statistics_bytes() const;
  size_t state_bytes() const { return state_bytes_; }
  // Since the last call.
  UpdateCounts TakeCounts();

 private:
  struct WaitingPull {
    uint64_t number = 0;
    int64_t key = kNoKey;      // that the worker has (pull_coding.h)
    bool asked_again = false;  // of the server that is dead: its worker asks again
  };
  struct Judgement {
    int64_t clock = 0;  // of the push
    ServerMessage message;
  };
  struct Snapshot {
    int worker = 0;
    uint64_t number = 0;
    std::vector<int64_t> pushes;  // by worker, that it is to have
  };
  std::vector<ServerReply> Leave(int worker);
  void CancelPull(int worker, std::vector<ServerReply>* replies);
  void Push(const ServerRequest& request, std::vector<ServerReply>* replies);
  PushResult Apply(const ServerRequest& request);
  PushResult Pass(const ServerRequest& request);
  std::span<const float> GradientOf(const ServerRequest& request, bool* whole);
  void Pull(int worker, const WaitingPull& pull, std::vector<ServerReply>* replies);
  SharedBuffer Coded(const SharedBuffer& weights, int64_t version, int64_t key);
  void Follow(std::vector<ServerReply>* replies);
  void Release(std::vector<ServerReply>* replies);
  void Answer(std::vector<ServerReply>* replies);
  void Count(const ServerMessage& push, const PushResult& result);

  Status CheckPush(int worker, const ServerMessage& message) const;
  bool Computes(int worker) const;
  const Judgement* JudgementOf(int worker, int64_t clock) const;
  void TakeSnapshots(std::vector<ServerReply>* replies);
  bool HasAll(const Snapshot& snapshot) const;
  void KeepStatistics();

  const Options options_;
  size_t state_bytes_ = 0;
  BufferPool pool_;
  std::vector<Snapshot> snapshots_;  // that wait
  std::vector<float> statistics_;    // the mean at the version of the shard
  int64_t statistics_version_ = -1;
  ServerMessage last_{.kind = MessageKind::kEnd};
  std::map<int, int64_t> pushes_;                // by worker
  std::map<int, std::deque<Judgement>> judged_;  // by worker, of its last pushes
  std::map<int, WaitingPull> waiting_;           // by worker
  SharedBuffer decoded_;
  UpdateCounts counts_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_SHARD_SERVICE_H_
