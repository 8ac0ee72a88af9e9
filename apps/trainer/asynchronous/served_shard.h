// ServedShard: the shard that this rank serves: its weights and optimizer, the rule, the thread, and
// on the first server the tickets and the running statistics.
//
//   WeightServer <- ServerShard <- ShardService <- ServerThread <- workers
//                                  TicketDesk, WorkerStatistics       the first server
//
// A replica of a shard is the same, of another rank's (PlacedShard::Replica).
//
// Its part of the run's state comes from the model (Create), and goes back there in a snapshot, which
// worker 0 asks for (state_snapshot.h).
// Thread-safety: the trainer thread. Errors: those of WeightServer; InvalidArgument if `from` is not
// where a run can have been. Destruction waits until all workers have left.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVED_SHARD_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVED_SHARD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/parameter_server/weight_server.h"
#include "apps/trainer/asynchronous/rule_state.h"
#include "apps/trainer/asynchronous/server_progress.h"
#include "apps/trainer/asynchronous/shard_placement.h"
#include "apps/trainer/generation.h"
#include "core/status.h"
#include "dist/parameter_server/wire/server_thread.h"
#include "dist/parameter_server/wire/shard_service.h"

namespace ringtail {

class ServedShard {
 public:
  // Shard `index` of `placed`. `generation` must outlive it.
  static StatusOr<std::unique_ptr<ServedShard>> Create(const Generation* generation,
                                                       const std::vector<PlacedShard>& placed,
                                                       size_t index, const ServerProgress& from,
                                                       const RuleState& learnt);

  // From now on requests are served, or the server's are followed. `own`: ServerThread::Options::own.
  void Start(std::function<void(ServerReply)> own);
  void StartReplica(std::function<void(ServerReply)> own);
  ServerThread* thread() { return thread_.get(); }
  size_t index() const { return index_; }  // of the shard

  // The first server: rows before `end` may be handed out; how far it has come; which pushes it has
  // had (ShardService::Pushes); that the run is over (ShardService::Close).
  void Open(int64_t end);
  ServerProgress progress();
  std::vector<int64_t> Pushes();
  void Close(const ServerMessage& last);
  UpdateCounts TakeCounts();
  double rate();      // of the last update
  bool HasWorkers();  // the first server: somebody computes
  // The names of the optimizer's blocks in a snapshot.
  std::vector<std::string> block_names();

 private:
  ServedShard(const Generation* generation, const PlacedShard& placed, size_t index)
      : generation_(generation), placed_(placed), index_(index) {}
  template <typename Read>
  auto Look(const Read& read);
  ServerThread::Options ThreadOptions(std::function<void(ServerReply)> own) const;
  Status CreateWeights(size_t servers, bool first, const ServerProgress& from);
  void ImportState();
  void ImportMemory(const RuleState& learnt);
  void SaveMemory();
  std::vector<std::span<const float>> State();

  const Generation* const generation_;
  const PlacedShard placed_;
  const size_t index_;
  std::unique_ptr<WeightServer> weights_;
  std::optional<TicketDesk> desk_;
  std::optional<WorkerStatistics> statistics_;
  std::optional<PullEncoder> pulls_;  // none: as floats
  std::vector<float> memory_;         // of the rule, at the last snapshot: its block, its scalars
  std::optional<ShardService> service_;
  std::unique_ptr<ServerThread> thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVED_SHARD_H_
