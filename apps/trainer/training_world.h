// TrainingWorld: the ranks that train one network together, as a trainer sees them. A world of one
// is one machine: its calls return at once, with what they were given.
//
//   the same on every rank   weights, running statistics, optimizer state, progress: they start as
//                            one rank's (ShareState), and every step changes them by the same bits
//   a share on every rank    rows of each global batch, validation images
//   rank 0 alone             writes files, talks to people, chooses algorithms
//
// All ranks make the same calls in the same order. The code that computes says where it is
// (progress()), so that a rank that hangs is named and not the ranks that wait for it.
// There are two communicators: the trainer thread's, and one whose thread adds up gradients while
// backward continues. Where ranks divide layers among them (dist.model_parallel), a third one's
// thread exchanges activations.
// Errors: what Communicator says; they name rank, peer and operation, and are final: `lost()` tells
// them from a failure of this rank's own. Thread-safety: the trainer thread.
#ifndef RINGTAIL_APPS_TRAINER_TRAINING_WORLD_H_
#define RINGTAIL_APPS_TRAINER_TRAINING_WORLD_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "apps/trainer/checkpoint/training_state.h"
#include "core/status.h"
#include "dist/channel.h"
#include "dist/collectives/plan_cost.h"
#include "dist/collectives/rank_group.h"
#include "dist/collectives/topology.h"
#include "dist/communicator.h"
#include "dist/dist.pb.h"
#include "dist/gradients/communication_thread.h"
#include "dist/liveness/progress_monitor.h"

namespace ringtail {

class TrainingWorld {
 public:
  // What a world of several is made of. The transport must outlive it.
  struct Peers {
    Transport* transport = nullptr;
    Topology topology;
    NetworkModel network;                      // as measured; the same on all ranks
    std::function<std::string(int)> describe;  // "rank 3 (node7, pid 4711)"
    ProgressMonitor* monitor = nullptr;        // outlives the world; null: none
  };

  TrainingWorld();  // of one rank
  static StatusOr<std::unique_ptr<TrainingWorld>> Create(const Peers& peers,
                                                         const DistConfig& config);
  ~TrainingWorld();

  // All ranks: a world of those in `group` alone, over the same transport; null on the others.
  // Ranks in it are numbered by member. This world must outlive it; one of both is used at a time.
  StatusOr<std::unique_ptr<TrainingWorld>> OfGroup(const RankGroup& group,
                                                   const DistConfig& config);

  int rank() const { return trainer_->rank(); }
  int size() const { return trainer_->world_size(); }
  bool alone() const { return size() == 1; }
  bool leads() const { return rank() == 0; }
  std::string Describe(int rank) const;
  const Topology& topology() const { return trainer_->topology(); }
  const NetworkModel& network() const { return network_; }  // as measured; all 0: alone
  // Of the slowest link between two ranks, as measured at the start.
  double seconds_per_byte() const { return seconds_per_byte_; }
  // How gradients of so many bytes are added up, and why.
  std::string DescribeAlgorithm(int64_t gradient_bytes);

  // For messages beside collectives, each kind on a channel of its own. All ranks take channels in
  // the same order.
  Transport* transport() { return peers_.transport; }
  Channel NextChannel() { return channels_.Next(); }
  // A count that grows while data moves anywhere (dist/collectives/executor.h); empty: there is none.
  std::function<uint64_t()> Moved() const;

  // The allreduce algorithms that were selected so far, by bytes; those of `source_rank` are kept
  // from now on (dist/collectives/selector.h). Rank 0 warns of those that do not suit the hosts of
  // now: others take their place.
  std::map<int64_t, std::string> SelectedAllreduces() const;
  Status KeepAllreduces(const std::map<int64_t, std::string>& selected, int source_rank);

  // That of `source_rank`, on every rank.
  Status ShareProgress(TrainingProgress* progress, int source_rank);
  // Replaces all that `state` holds by what it holds on `source_rank`. What has the same checksums
  // everywhere already, as in ranks that begin a run, does not travel.
  Status ShareState(TrainingState* state, int source_rank);
  // What `source_rank` gives, on every rank. By default that is the rank that leads.
  StatusOr<std::string> ShareText(std::string text, int source_rank = 0);
  StatusOr<std::vector<int64_t>> ShareNumbers(std::vector<int64_t> numbers, int source_rank);
  // InvalidArgument that names two ranks and both values, unless all have the same.
  Status Agree(std::string_view what, const std::string& value);
  Status Sum(std::span<double> numbers);
  // Any other collectives.
  Status Run(const std::function<Status(Communicator*)>& collectives);
  // What every rank gives, by rank.
  template <typename T>
  StatusOr<std::vector<T>> Gather(const T& own) {
    static_assert(std::is_trivially_copyable_v<T>);  // all ranks run the same build
    std::vector<T> all(size());
    all[rank()] = own;
    RT_RETURN_IF_ERROR(Run([&](Communicator* ranks) {
      return ranks->AllGather(std::as_writable_bytes(std::span(all)));
    }));
    return all;
  }
  // As many numbers of each rank, by rank.
  StatusOr<std::vector<std::vector<double>>> GatherNumbers(const std::vector<double>& own);
  StatusOr<std::vector<std::string>> GatherText(const std::string& text);
  // The first rank whose `own` is an error, and that error's message; all ranks are told the same.
  struct RankError {
    int rank = 0;
    std::string message;
  };
  StatusOr<std::optional<RankError>> FirstError(const Status& own);
  Status Barrier();

  // All ranks, once nothing needs all of them any more, which is when the last of them calls: a rank
  // that is lost, unless it is rank 0, is not the end of the others from now on. They are told of it
  // (`observer`, which may be null, of ranks of the transport). Collectives are over: they would
  // end with the first loss. A transport that cannot outlive a rank says so once, and all stays as
  // it was; tolerant() tells.
  Status TolerateLosses(std::shared_ptr<PeerLossObserver> observer);
  bool tolerant() const { return tolerant_; }
  // An operation with `peer` has failed. OK: only that peer is lost, and this rank continues;
  // otherwise why its own part in the world is over.
  Status OnFailure(int peer, const Status& error);

  // Tells the others why this rank ends.
  void Abort(const Status& cause);
  // Whether a call has failed: the world is over, through another rank or the network.
  bool lost() const { return lost_; }
  // The world is over for this rank alone: it may not write for the others.
  bool cut_off() const { return monitor_ != nullptr && monitor_->cut_off(); }

  // Which rank is to blame for the end, where that is known though no call has failed.
  enum class Culprit { kNone, kThisRank, kAnother, kUnknown };
  void Blame(Culprit culprit) { culprit_ = culprit; }
  Culprit culprit() const { return culprit_; }
  // The ranks whose state was wrong at some time (update/state_agreement.h).
  std::set<int>* wrong_ranks() { return &wrong_ranks_; }

  // Adds up gradients beside the trainer thread; null if alone.
  CommunicationThread* gradient_thread() { return gradient_thread_.get(); }
  Status WaitForGradients();  // for all that its thread was given
  Status WaitForGradients(int64_t job);
  // Exchanges activations beside the trainer thread; null if nothing is divided.
  CommunicationThread* shard_thread() { return shard_thread_.get(); }
  Status WaitForShards(int64_t job);
  Progress* progress() { return monitor_ != nullptr ? &monitor_->progress() : &unwatched_; }
  // What a step took, without and with waiting for others. A rank that trains alone, while others
  // are idle, hears here that one of them is lost.
  Status RecordStep(double own_seconds, double step_seconds);
  int64_t sent_bytes() const;  // so far

 private:
  explicit TrainingWorld(const Peers& peers);
  // A world over `group`; null on ranks that are not in it. `channels` are those of the transport.
  static StatusOr<std::unique_ptr<TrainingWorld>> CreateOver(const RankGroup& group,
                                                             const Peers& peers,
                                                             const DistConfig& config,
                                                             ChannelAllocator* channels);
  // Does what all ranks do together; remembers if the world is over.
  Status Together(const std::function<Status()>& call);
  // For each block, whether it has one checksum on all ranks.
  StatusOr<std::vector<bool>> SameEverywhere(std::span<const std::span<float>> blocks);

  void Lose();  // the world is over

  TrainingWorld* parent_ = nullptr;  // of a group: the world that it is a part of
  bool lost_ = false, tolerant_ = false;
  Culprit culprit_ = Culprit::kNone;
  std::set<int> wrong_ranks_;
  NetworkModel network_;
  double seconds_per_byte_ = 0;
  std::function<std::string(int)> describe_;
  ProgressMonitor* monitor_ = nullptr;
  Peers peers_;                // of the whole world
  ChannelAllocator channels_;  // of its transport
  Progress unwatched_;
  std::unique_ptr<Transport> own_transport_;  // of a world of one
  std::unique_ptr<Communicator> trainer_;
  std::unique_ptr<Communicator> gradients_;  // null if alone, as is the thread
  std::unique_ptr<CommunicationThread> gradient_thread_;
  std::unique_ptr<Communicator> shards_;  // null if nothing is divided, as is the thread
  std::unique_ptr<CommunicationThread> shard_thread_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_TRAINING_WORLD_H_
