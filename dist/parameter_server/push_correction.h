// PushCorrection: corrects pushes by what the rule says (compensation.h), and keeps what that
// needs.
//
//   rule                       keeps                                     elements
//   delay, constant; gap       weights of versions under way             versions (VersionRing)
//   delay, adaptive            and mean squares                          + workers
//   gap                        and the weights before the last update    + 1
//   DANA                       velocities                                workers + 1
//   DANA, weight by gap        both; of versions, what workers were given
//   none                       nothing
//
// A push without staleness stays as it is, and so does every push before Compensation::start_epoch
// (DANA's velocity is from the start). A worker pushes once for each pull; it may have several
// pulls under way, and pushes them in order.
// Thread-safety: none. Cost: a pass or two over the elements for a push, nothing without
// correction.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_PUSH_CORRECTION_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_PUSH_CORRECTION_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "dist/parameter_server/asynchronous_rule.h"
#include "dist/parameter_server/rule_memory.h"
#include "dist/parameter_server/version_ring.h"

namespace ringtail {

// A worker's gradient of one shard.
struct GradientPush {
  int worker = 0;
  int64_t base_version = 0;         // of the pull that it was computed with
  int64_t images = 0;               // > 0
  std::span<const float> gradient;  // sums over the images, of the shard's size
  // What the worker says of the gradient of all shards, so that all refuse it or none.
  bool finite = true;
  double norm = 0;  // of the mean gradient, for ShardUpdate::mean_norm
};

class PushCorrection {
 public:
  PushCorrection(const AsynchronousRule& rule, int64_t elements, int versions,
                 VersionRing::Format format);

  // A worker takes the weights of `version`.
  void OnPull(int worker, int64_t version, std::span<const float> weights);
  // What it is given: the weights, or what DANA expects them to be.
  void CopyForWorker(std::span<const float> weights, std::span<float> out) const;

  // Whether what a correction needs is still there.
  bool CanCorrect(const GradientPush& push, int64_t version, double epoch) const;
  // The corrected gradient, valid until the next call; the push's own if nothing is to be
  // corrected.
  std::span<const float> Correct(const GradientPush& push, int64_t version, double epoch,
                                 std::span<const float> weights);
  // The push is done with, whatever became of it: its version is no longer needed for this worker.
  void OnPush(int worker, int64_t base_version);
  // Before and after the weights change; the latter with the learning rate, and the count of updates
  // with this one.
  void BeforeUpdate(std::span<const float> weights);
  void AfterUpdate(std::span<const float> weights, double learning_rate, int64_t updates);
  void Remove(int worker);
  // What it has pulled it will not push.
  void DropPulls(int worker);

  // Into a block of as many elements as the shard has, or none (RuleBlockName); and of the scalars
  // those that are its own. The sum of velocities is added up anew, here and in what is saved: kept
  // up to date push by push it has rounding errors that a run which continues does not have.
  void SaveMemory(std::span<float> block, RuleScalars* scalars);
  // Before the first pull, once `workers` have joined.
  void RestoreMemory(std::span<const float> block, const RuleScalars& scalars,
                     std::span<const int> workers);

  const VersionRing& versions() const { return versions_; }

 private:
  bool Compares(int64_t staleness, double epoch) const;
  void CorrectPart(const GradientPush& push, int64_t begin, std::span<const float> weights);
  std::span<const float> AddVelocity(const GradientPush& push, std::span<const float> gradient);
  void AddUpVelocities();

  const AsynchronousRule rule_;
  const int64_t elements_;
  const double limit_;
  VersionRing versions_;
  std::map<int, std::vector<int64_t>> pulls_;  // versions under way, by worker, ascending
  std::map<int, std::vector<float>> mean_squares_, velocities_;  // by worker
  std::vector<float> velocity_sum_, before_, corrected_, then_, sent_;
  double learning_rate_ = 0;
  double mean_step_ = 0;  // running mean of the change of a weight in an update
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_PUSH_CORRECTION_H_
