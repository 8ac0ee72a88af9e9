// ServerShard: a part of the weights, and the rule by which gradients of many workers change it. It
// has no thread, socket, clock or optimizer of its own: it is told what has arrived, so that a
// test, the emulator and a real server play the same story, and the same story gives the same bits.
//
//   worker                      shard                                      version
//   Pull(A)             -->     weights of version 0                       0
//   Pull(B)             -->     weights of version 0
//   Push(A, base 0)     -->     applied, staleness 0                       1
//   Pull(A)             -->     wait, if A is too far ahead of B
//   Push(B, base 0)     -->     applied, staleness 1; A is released        2
//   TakeReleased()      -->     {A}: ask again with Pull(A)
//
//   Push:   known worker? -> version of today or before? -> finite? -> young? -> version kept?
//             | no: refused, with the reason
//             v yes
//           corrected (push_correction.h), weighted -> GroupSum -- full? --> Apply, version + 1
//
// Apply is called once for each update, so that weight decay is, too; it finds the sum of the
// group's gradients in the span that the shard was made with, changes the weights, and returns the
// learning rate that it used. Every push ticks its worker's clock, also one that is refused, so
// that no worker holds up the others by what it pushes; one that was too old continues where the
// others are. What is not finite fills its place in a group, since its worker has answered.
//
// With several shards each has its own versions and its own judgement of age: a push may be too old
// for one of them only. Whether it is finite the worker says for all of them
// (GradientPush::finite).
//
// Errors: the outcomes below; the caller checks sizes and counts that come from the wire.
// Thread-safety: none. Cost of a push: two passes (finite, sum), those of a correction, Apply.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_SERVER_SHARD_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_SERVER_SHARD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "dist/parameter_server/asynchronous_rule.h"
#include "dist/parameter_server/clock_table.h"
#include "dist/parameter_server/group_sum.h"
#include "dist/parameter_server/push_correction.h"
#include "dist/parameter_server/staleness_statistics.h"
#include "dist/parameter_server/version_ring.h"

namespace ringtail {

struct ShardOptions {
  AsynchronousRule rule;
  int64_t images_per_epoch = 1;  // for Compensation::start_epoch
  int versions = 64;             // kept for rules that compare
  VersionRing::Format format = VersionRing::Format::kFloat;
  int64_t first_version = 0, first_images = 0;  // where an earlier shard ended
};

// What Apply is told of an update.
struct ShardUpdate {
  int64_t version = 0;        // before it
  int64_t images_before = 0;  // of all updates before it: what the learning rate follows
  int64_t images = 0;         // whose gradients are in the sum
  int pushes = 0;
  // Over its pushes, of the weighted gradient of all shards: at least the sum's.
  double mean_norm = 0;
  // What an image's gradient has counted lately (StalenessWeight), a running mean: of the rate, where
  // a smaller gradient would be the same step (Muon, LARS). Exactly 1 if all weights are.
  double usual_weight = 1;
  double scale() const { return 1 / static_cast<double>(images); }  // makes the sum a mean
};
using ApplyUpdate = std::function<double(const ShardUpdate& update)>;

enum class PushOutcome { kApplied, kAccumulated, kRefused };
enum class RefusalReason {
  kNone,
  kUnknownWorker,  // never joined, or was removed: others have its images
  kFutureVersion,  // the shard has never had that version: it was damaged or restored
  kNotFinite,
  kTooOld,       // Admission::discard_after
  kVersionGone,  // the weights to compare with have given way (version_ring.h)
};
inline constexpr int kRefusalReasons = 6;
const char* RefusalReasonName(RefusalReason reason);  // "not finite"

struct PushResult {
  PushOutcome outcome = PushOutcome::kRefused;
  RefusalReason reason = RefusalReason::kNone;
  int64_t staleness = 0;  // in updates; 0 if the worker or the version is unknown
  int64_t version = 0;    // of the shard, afterwards
};

struct PullReply {
  int64_t version = 0;
  int64_t images = 0;  // applied up to this version
};

class ServerShard {
 public:
  // `weights` are what Apply changes, `gradients` of the same size what it reads; both outlive the
  // shard.
  ServerShard(const ShardOptions& options, std::span<const float> weights,
              std::span<float> gradients, ApplyUpdate apply);

  void Join(int worker);  // a number that no worker has had, or one that pauses
  // It is gone: no one waits for it any more, and what it still sends is refused.
  void Remove(int worker);
  // It computes nothing until it joins again: no one waits for it meanwhile. What the rule has learnt
  // of it stays, and what it has added. Nothing happens if it pauses already.
  void Pause(int worker);
  PushResult Push(const GradientPush& push);
  // In place of a push: it had no images this time. It fills its place in the group, adds nothing.
  PushResult Pass(int worker, int64_t base_version);
  // The weights, into `out`, of the shard's size; nullopt: the worker must wait. Of one that
  // joined.
  std::optional<PullReply> Pull(int worker, std::span<float> out);
  // Workers that were told to wait and need to no more, since the last call; ascending.
  std::vector<int> TakeReleased();
  // What the rule has learnt (rule_memory.h). `block`: as large as the shard, or empty if the rule has
  // none. Restored before the first pull, once the workers have joined.
  RuleScalars SaveMemory(std::span<float> block);
  void RestoreMemory(std::span<const float> block, const RuleScalars& scalars);
  // No more pushes will come: applies the incomplete group, with its own count. False: there was
  // none.
  bool Finish();

  size_t elements() const { return weights_.size(); }
  int64_t version() const { return version_; }
  int64_t images() const { return images_; }  // applied
  const AsynchronousRule& rule() const { return options_.rule; }
  const ClockTable& clocks() const { return clocks_; }
  bool paused(int worker) const { return paused_.contains(worker); }
  const StalenessStatistics& staleness() const { return staleness_; }  // of pushes that were taken
  int64_t refused(RefusalReason reason) const { return refused_[static_cast<size_t>(reason)]; }
  int64_t versions_given_way() const { return correction_.versions().given_way(); }

 private:
  double Epoch() const;
  size_t Members() const;
  RefusalReason Judge(const GradientPush& push) const;
  void OnRefused(const GradientPush& push, RefusalReason reason);
  bool UpdateIfFull();
  void Update();

  const ShardOptions options_;
  const std::span<const float> weights_;
  const ApplyUpdate apply_;
  ClockTable clocks_;
  GroupSum group_;
  PushCorrection correction_;
  StalenessStatistics staleness_;
  std::array<int64_t, kRefusalReasons> refused_{};
  std::set<int> waiting_, paused_;
  double norms_ = 0, image_weights_ = 0;  // sums over the pushes, and over the images, of the group
  double usual_weight_ = 1;
  int64_t version_, images_, updates_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_SERVER_SHARD_H_
