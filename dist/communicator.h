// Communicator: what all ranks of a group do together, over a transport. The group is the whole
// world by default.
//
//   communicator->AllReduce(gradients);        every rank ends with the sum, the same bits on all
//   communicator->AllGather(numbers);          every rank ends with the parts of all
//   communicator->Broadcast(weights, 0);       every rank ends with what rank 0 has
//   communicator->Barrier();                   no rank returns before every rank has called
//
// A call blocks its thread until this rank's part is done. All ranks of the group make the same
// calls in the same order, with the same types and counts; where they differ they get an error that
// says so, and never each other's numbers. In a group of one every call returns at once.
//
// Groups (dist/collectives/rank_group.h). Within a group ranks are numbered by member: rank(),
// roots and parts count from 0 to world_size() - 1. Errors name ranks of the world. Communicators
// over different groups, overlapping or not, share one transport and may be used at the same time,
// each with a thread and a channel of its own.
//
// Channels. Two threads of a rank that communicate at the same time (the trainer's, and the one
// that reduces gradients) take a communicator each, with different channels: calls are counted per
// channel, so it does not matter how the threads of two ranks interleave. A channel is used by one
// communicator in the life of a transport (dist/channel.h).
//
// Errors: as Executor's: the first one ends the transport, every later call returns it.
// Thread-safety: one thread at a time. State: the schedules of all calls made so far, by kind, type
// and count; a staging area of ExecutorOptions.
#ifndef RINGTAIL_DIST_COMMUNICATOR_H_
#define RINGTAIL_DIST_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/check.h"
#include "core/status.h"
#include "dist/channel.h"
#include "dist/collectives/allgather_choice.h"
#include "dist/collectives/executor.h"
#include "dist/collectives/rank_group.h"
#include "dist/collectives/selector.h"
#include "dist/transport/transport.h"

namespace ringtail {

class Communicator {
 public:
  struct Options {
    std::string algorithm = "auto";  // of AllReduce; see dist/collectives/selector.h
    std::string allgather = "auto";  // or a name of dist/collectives/allgather_choice.h
    NetworkModel network;            // for "auto", the same on every rank; all 0: not known
    ExecutorOptions executor;
    Channel channel;  // the same on every rank of the group
  };

  // Over the whole world. InvalidArgument for an algorithm or table that does not exist.
  // `transport` must outlive the communicator; `topology` has as many ranks as it.
  static StatusOr<std::unique_ptr<Communicator>> Create(Transport* transport,
                                                        const Topology& topology,
                                                        const Options& options);

  // Over each of `groups`, which may overlap: null where this rank is not a member. All ranks of
  // the world pass the same list. `options.channel` is ignored: each group takes the next channel
  // of `channels` on every rank, members or not, so that all ranks keep counting alike.
  static StatusOr<std::vector<std::unique_ptr<Communicator>>> CreateForGroups(
      Transport* transport, const Topology& topology, std::span<const RankGroup> groups,
      Options options, ChannelAllocator* channels);

  // Within the group.
  int rank() const { return rank_; }
  int world_size() const { return group_.size(); }
  const RankGroup& group() const { return group_; }
  const Topology& topology() const { return topology_; }

  // T is float, double or int64_t.
  template <typename T>
  Status AllReduce(std::span<T> array) {
    return Run(Kind::kAllReduce, 0, array);
  }
  // Afterwards EvenPart(count, world, rank) holds the sum; the rest is undefined.
  template <typename T>
  Status ReduceScatter(std::span<T> array) {
    return Run(Kind::kReduceScatter, 0, array);
  }
  // T may be std::byte, too. Before the call, EvenPart(count, world, rank) holds this rank's data;
  // afterwards every part holds its owner's. With count = world, element i is rank i's. In log2 N
  // rounds if it is short (dist/collectives/allgather_choice.h).
  template <typename T>
  Status AllGather(std::span<T> array) {
    return Run(Kind::kAllGather, 0, array);
  }
  // Copies the array of rank `from` to rank `to`.
  template <typename T>
  Status Copy(std::span<T> array, int from, int to) {
    return from == to ? OkStatus() : Run(Kind::kCopy, from * world_size() + to, array);
  }
  // `array` has 2 world_size() blocks of the same size: one to each rank, then one from each
  // (dist/collectives/algorithms/all_to_all.h).
  template <typename T>
  Status AllToAll(std::span<T> array) {
    RT_CHECK(array.size() % (2 * world_size()) == 0, "all-to-all takes whole blocks");
    return Run(Kind::kAllToAll, 0, array);
  }
  template <typename T>
  Status Broadcast(std::span<T> array, int root) {
    return Run(Kind::kBroadcast, root, array);
  }
  Status Barrier();

  // The text of `root`. ResourceExhausted, without allocating, if it has more than `max_bytes`.
  StatusOr<std::string> BroadcastText(std::string text, int root, int64_t max_bytes);
  // The texts of all ranks, by rank. ResourceExhausted, without allocating, if one has more than
  // `max_bytes`. Takes 2 log2 N rounds.
  StatusOr<std::vector<std::string>> AllGatherText(const std::string& text, int64_t max_bytes);

  // The algorithm of AllGather for an array of so many elements.
  const AllgatherAlgorithm& GatherChoice(int64_t count, size_t element_bytes) const;
  // The algorithm of AllReduce for so many bytes, and why.
  const AllreduceChoice& Choice(int64_t bytes) { return selector_.Select(bytes); }
  // AlgorithmSelector::Selected and Keep. Keep before a call, on all ranks.
  std::map<int64_t, std::string> SelectedAlgorithms() const { return selector_.Selected(); }
  StatusOr<std::set<std::string>> KeepAlgorithms(const std::map<int64_t, std::string>& selected);
  int64_t sent_bytes() const { return sent_bytes_; }  // by this rank, headers not counted

  // Ends the world for this rank; the peers are told the cause.
  void Abort(const Status& cause) { transport_->Abort(cause); }

 private:
  enum class Kind {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kAllToAll,
    kCopy,
    kBroadcast,
    kBarrier
  };
  using Key = std::tuple<Kind, int, ElementType, int64_t>;  // root (or both ends), count
  struct Call {
    Schedule schedule;
    int64_t sent_bytes = 0;
  };

  static StatusOr<std::unique_ptr<Communicator>> CreateOver(RankGroup group, Transport* transport,
                                                            const Topology& topology,
                                                            const Options& options);
  Communicator(RankGroup group, Transport* transport, Topology topology, AlgorithmSelector selector,
               const AllgatherAlgorithm* allgather, const Options& options);

  template <typename T>
  Status Run(Kind kind, int root, std::span<T> array) {
    const Call& call = CallOf({kind, root, ElementTypeOf<T>::kValue, array.size()});
    sent_bytes_ += call.sent_bytes;
    return executor_.Run(call.schedule, next_collective_++, array);
  }
  const Call& CallOf(const Key& key);
  Call MakeCall(const Key& key);
  Schedule MakeSchedule(Plan plan, Collective collective) const;  // of a plan between members
  Status CheckLength(int64_t bytes, int root, int64_t max_bytes) const;

  Transport* const transport_;
  const RankGroup group_;
  const int rank_;           // in the group
  const Topology topology_;  // of the group
  const NetworkModel network_;
  const AllgatherAlgorithm* const allgather_;  // null: the cheaper one
  AlgorithmSelector selector_;
  Executor executor_;
  std::map<Key, Call> calls_;
  uint64_t next_collective_;
  int64_t sent_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMMUNICATOR_H_
