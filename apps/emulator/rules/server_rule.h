// ServerRule: servers hold the weights, and workers push gradients to them and pull weights without
// waiting for one another (dist.asynchronous). The rules are the state machines that real servers
// run (dist/parameter_server/, apps/parameter_server/).
//
//   worker 0    |pull|compute 0      |push, pull|compute 1      |push, pull|
//   worker 1    |pull|compute 0   |push, pull|compute 1   |push, pull|
//   server 0         ^ its part of the weights ^ update   ^ update
//
//   overlap     worker 0    |pull|compute 0  |compute 1  |compute 2  |
//                                |pull       |push 0, pull |push 1, pull
//
// A worker's batch is train.batch images; which, tickets say (dist/parameter_server/tickets.h). What
// a run calls a step is as many images as one update has at the start: rates, phases and evaluations
// follow the images that were applied. Each worker has running statistics of its own; those that are
// evaluated are the mean of what the workers sent last. Where all wait for all, workers begin with
// that mean, and with one server the bits are those of SynchronousRule.
// Server i is on worker i's host, and stays if that worker dies. An update takes its share of
// update_ms, and decoding a push its share of decode_ms.
// Pushes travel by dist.compression, pulls by dist.asynchronous.pull: their bytes take virtual time,
// and workers and servers compute with what is decoded.
// A run whose loss becomes that of chance, or far worse, is said to diverge (DivergenceGuard).
// Thread-safety: the trainer thread. Memory: per worker two blocks of the model's size, one for each
// gradient under way, and what coding keeps.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_SERVER_RULE_H_
#define RINGTAIL_APPS_EMULATOR_RULES_SERVER_RULE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "apps/emulator/emulated_job.h"
#include "apps/emulator/rules/emulated_rule.h"
#include "apps/emulator/rules/push_compression.h"
#include "apps/emulator/rules/server_push.h"
#include "apps/emulator/rules/server_queue.h"
#include "apps/parameter_server/divergence_guard.h"
#include "apps/parameter_server/weight_server.h"
#include "core/aligned_buffer.h"
#include "core/status.h"
#include "dist/parameter_server/pull_coding.h"
#include "dist/parameter_server/tickets.h"

namespace ringtail {

class ServerRule : public EmulatedRule {
 public:
  // InvalidArgument if the rule and the optimizer contradict each other.
  static StatusOr<std::unique_ptr<EmulatedRule>> Create(EmulatedJob* job);

  Status Begin() override;
  Status OnDeath(int /*worker*/) override { return OkStatus(); }
  Status OnNotice(int worker) override;
  Status OnJoin(int worker) override;
  int64_t StateBytes() const override { return 0; }  // a worker begins with a pull
  bool finished() const override { return finished_; }

 private:
  struct Seat {
    AlignedBuffer weights, statistics;
    std::vector<PullDecoder> pulls;                // by server
    std::vector<int64_t> versions;                 // by server, of `weights`
    std::unique_ptr<PushCompression> compression;  // null: none
    size_t missing = 0;                            // parts of `weights` that have been asked for
    bool pulled = false;                           // `weights` is whole, and not used yet
    bool computing = false;
    int under_way = 0;  // pushes
    int64_t steps = 0;
    int64_t idle_since_ns = 0;
  };
  struct Server {
    std::unique_ptr<WeightServer> weights;
    std::unique_ptr<ServerQueue> queue;
    PullEncoder pulls;
    double update_s = 0, decode_s = 0;  // of an update, of a push
  };
  ServerRule(EmulatedJob* job, const AsynchronousRule& rule);
  Status CreateServers();
  StatusOr<Server> CreateServer(const WeightServerOptions& options, int host, double share);
  Status AddWorker(int worker);
  bool Counts(int worker) const { return seats_.contains(worker) && !job_->is_dead(worker); }

  Status RequestPull(int worker);
  Status ServePull(size_t server, int worker);
  Status AnswerPull(size_t server, int worker);
  Status OnPulled(int worker);
  Status StartIfReady(int worker);
  Status Compute(int worker, const Ticket& ticket);
  Status OnComputed(int worker, const std::shared_ptr<ServerPush>& push, int64_t begin_ns);
  Status SendPush(int worker, const std::shared_ptr<ServerPush>& push);
  // The seconds that the server takes.
  StatusOr<double> Deliver(size_t server, int worker, const std::shared_ptr<ServerPush>& push);
  Status OnDelivered(int worker, const ServerPush& push);
  void Watch(const ServerPush& push);
  void LogPush(const PushResult& result, int64_t images);
  void LogUpdate();
  void MeanStatistics();
  Status Release(size_t server);
  Status Wake();
  Status EvaluateIfDue();
  void CopyToModel();
  Status End();

  EmulatedJob* const job_;
  const AsynchronousRule rule_;
  const OptimConfig optim_;
  const bool overlap_, compresses_;
  const int64_t images_per_step_, images_per_push_;
  Tickets tickets_;
  std::vector<Server> servers_;
  std::map<int, Seat> seats_;
  std::map<int, std::vector<float>> statistics_;  // by worker, as sent last
  std::set<int> idle_;                            // no ticket was left for them
  ServerUpdate update_line_;                      // of server 0: the group that is being filled
  int64_t logged_version_ = 0, evaluated_step_ = 0;
  DivergenceGuard guard_;
  bool finished_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_SERVER_RULE_H_
