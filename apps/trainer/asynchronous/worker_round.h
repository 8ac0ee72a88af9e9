// WorkerRound: what a worker does with servers: tickets, pulls and pushes.
//
//   Next       | wait: ticket, weights |            | wait |
//   compute                            | rows 0..15 |      | rows 32..47 |
//   Push                                            push 0               push 1
//   pulls        pull 0   [overlap: pull 1 .......]
//   tickets      two ahead: one is computed, the next one's images are read meanwhile
//
// One push may be under way while the next gradient is computed. Worker 0, which keeps the run, hears
// that a round is over once all rows are used: it takes a snapshot of all servers then, while the
// others wait, and the next round begins. What it has pulled ahead is dropped, so that with one
// worker, or if all wait for all, a round begins with the weights that the last one ended with. The
// others hear of the end of the run alone.
// Waiting is Phase::kBlocked (dist/liveness/progress.h).
// Thread-safety: the trainer thread. Memory: weights and gradient of a push, twice with overlap.
// Errors: those of WorkerLink.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_WORKER_ROUND_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_WORKER_ROUND_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "apps/trainer/asynchronous/shard_placement.h"
#include "apps/trainer/training_world.h"
#include "apps/trainer/update/own_step.h"
#include "apps/trainer/update/step_work.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/compression/memory/layer_memories.h"
#include "dist/parameter_server/pull_coding.h"
#include "dist/parameter_server/wire/buffer_pool.h"
#include "dist/parameter_server/wire/worker_link.h"

namespace ringtail {

class WorkerRound {
 public:
  struct Options {
    bool overlap = false;  // the next weights are pulled while a gradient is computed
    bool bounded = false;  // others wait for a worker that falls behind
    bool computes = true;  // or it serves alone, and only hears what the others do
    AsynchronousConfig::Pull pull = AsynchronousConfig::F32;
    const LayerMemories* memories = nullptr;  // of coded gradients
  };
  // All pointers must outlive it.
  WorkerRound(TrainingWorld* world, WorkerLink* link, const std::vector<PlacedShard>* shards,
              ParameterArena* model, const Options& options);

  // The weights are in the model, and this is to be computed with them; nothing: the round is over,
  // or, on a rank that does not compute, a second has passed.
  // `signal`: told to the servers, if this process is to stop (0: it is not).
  StatusOr<StepWork> Next(int signal);
  // The gradient of the work that Next has returned last is in the model. `finite`: it, and the loss,
  // are; `norm`: of the mean gradient.
  Status Push(const OwnStep& own, bool finite, double norm, int signal);
  // After a round that is over: the next one begins with Next.
  void Restart();
  // Worker 0, after a round that is over: what each server has, once it has had `pushes` of the
  // workers; by shard.
  StatusOr<std::vector<SharedBuffer>> TakeSnapshot(std::span<const int64_t> pushes);
  // This worker computes nothing for a while: who may be only so far ahead does not wait for it. So
  // does one that waits for a ticket.
  void GoAway();
  // Nothing follows.
  void Leave();

  int64_t images() const { return images_; }  // applied, as the first server has said last
  int64_t version() const { return version_; }
  bool over() const { return IsOver(); }
  // Once it is over: why.
  const ServerMessage& end() const { return end_; }
  double TakeBlockedSeconds() { return std::exchange(blocked_seconds_, 0); }

 private:
  struct Pushed {
    Ticket ticket;
    size_t unanswered = 0, refused = 0;
    bool refused_by_first = false;
  };
  void Ask(int signal);
  Status WaitForWork();
  void SendPush(ServerMessage message, int signal);
  StatusOr<StepWork> Watch(int signal);
  void Pull();
  Status Install();
  SharedBuffer Code(const PlacedShard& shard, bool finite);
  void OnReply(WorkerLink::Reply reply);
  void OnJudged(const WorkerLink::Reply& reply);
  bool IsOver() const;
  Status WaitUntil(const std::function<bool()>& reached);
  StatusOr<bool> Wait(const std::function<bool()>& reached, std::chrono::milliseconds limit);
  StatusOr<bool> TakeReplies(const std::function<bool()>& reached, std::chrono::milliseconds limit);
  bool Pulled() const { return has_pulled_ && missing_ == 0; }

  TrainingWorld* const world_;
  WorkerLink* const link_;
  const std::vector<PlacedShard>* const shards_;
  ParameterArena* const model_;
  const Options options_;
  std::vector<PullDecoder> decoders_;  // by shard; none: weights travel as floats
  BufferPool pool_;

  std::deque<Ticket> tickets_;  // the first is computed, or comes next
  std::set<uint64_t> asked_;    // numbers of questions that wait for an answer
  bool begun_ = false, over_ = false;
  bool told_signal_ = false;  // of a rank that does not compute
  ServerMessage end_;
  std::vector<WorkerLink::Reply> pulled_;  // by shard
  size_t missing_ = 0;                     // of them
  bool has_pulled_ = false;                // they are, or will be, of use
  std::vector<uint64_t> pull_numbers_;     // of the last pull, by shard
  std::vector<int64_t> versions_;          // by shard, of the weights in the model
  std::map<std::pair<size_t, uint64_t>, std::shared_ptr<Pushed>> judging_;  // by shard and number
  int under_way_ = 0;                                                       // pushes
  std::vector<SharedBuffer> states_;  // by shard, of a snapshot
  size_t states_missing_ = 0;
  int64_t pushes_ = 0, images_ = 0, version_ = 0;
  double blocked_seconds_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_WORKER_ROUND_H_
