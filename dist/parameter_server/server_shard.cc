#include "dist/parameter_server/server_shard.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

// The usual weight is that of about so many updates.
constexpr double kUsualUpdates = 100;

}  // namespace

const char* RefusalReasonName(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kNone:
      return "none";
    case RefusalReason::kUnknownWorker:
      return "unknown worker";
    case RefusalReason::kFutureVersion:
      return "version of the future";
    case RefusalReason::kNotFinite:
      return "not finite";
    case RefusalReason::kTooOld:
      return "too old";
    case RefusalReason::kVersionGone:
      return "version gone";
  }
  return "unknown";
}

ServerShard::ServerShard(const ShardOptions& options, std::span<const float> weights,
                         std::span<float> gradients, ApplyUpdate apply)
    : options_(options),
      weights_(weights),
      apply_(std::move(apply)),
      clocks_(options.rule.admission.bound, options.rule.grouping.backups),
      group_(options.rule.grouping, gradients),
      correction_(options.rule, static_cast<int64_t>(weights.size()), options.versions,
                  options.format),
      version_(options.first_version),
      images_(options.first_images) {
  RT_CHECK(weights.size() == gradients.size() && options.images_per_epoch > 0,
           "a gradient for every weight, and epochs that have images");
}

void ServerShard::Join(int worker) {
  clocks_.Join(worker);
  paused_.erase(worker);
}

void ServerShard::Remove(int worker) {
  clocks_.Remove(worker);
  group_.Remove(worker);
  correction_.Remove(worker);
  waiting_.erase(worker);
  paused_.erase(worker);
  UpdateIfFull();
}

void ServerShard::Pause(int worker) {
  paused_.insert(worker);
  clocks_.Remove(worker);
  correction_.DropPulls(worker);
  waiting_.erase(worker);
  if (!group_.takes_any()) group_.Remove(worker);
  UpdateIfFull();
}

// Those by whose number a group is full. Who pauses will be back: where any may fill a place, how
// many pushes make an update does not depend on when a worker pauses.
size_t ServerShard::Members() const {
  return clocks_.size() + (group_.takes_any() ? paused_.size() : 0);
}

PushResult ServerShard::Push(const GradientPush& push) {
  PushResult result{.reason = Judge(push), .version = version_};
  if (result.reason != RefusalReason::kUnknownWorker &&
      result.reason != RefusalReason::kFutureVersion) {
    result.staleness = version_ - push.base_version;
  }
  if (result.reason != RefusalReason::kNone) {
    OnRefused(push, result.reason);
    result.version = version_;
    return result;
  }
  const double weight = options_.rule.weight.Of(result.staleness, version_);
  const std::span<const float> gradient = correction_.Correct(push, version_, Epoch(), weights_);
  group_.Add(push.worker, gradient, weight, push.images);
  norms_ += weight * push.norm;
  image_weights_ += weight * static_cast<double>(push.images);
  correction_.OnPush(push.worker, push.base_version);
  staleness_.Add(result.staleness);
  clocks_.Tick(push.worker);
  result.outcome = UpdateIfFull() ? PushOutcome::kApplied : PushOutcome::kAccumulated;
  result.version = version_;
  return result;
}

PushResult ServerShard::Pass(int worker, int64_t base_version) {
  correction_.OnPush(worker, base_version);
  group_.AddNothing(worker);
  clocks_.Tick(worker);
  const bool full = UpdateIfFull();
  return {.outcome = full ? PushOutcome::kApplied : PushOutcome::kAccumulated, .version = version_};
}

RefusalReason ServerShard::Judge(const GradientPush& push) const {
  if (!clocks_.Has(push.worker)) return RefusalReason::kUnknownWorker;
  if (push.base_version > version_) return RefusalReason::kFutureVersion;
  RT_CHECK(push.gradient.size() == weights_.size() && push.base_version >= 0,
           "a gradient for every weight");
  // (In double no square of a float overflows, so the sum is finite if all elements are.)
  if (!push.finite || !std::isfinite(SumOfSquares(push.gradient))) {
    return RefusalReason::kNotFinite;
  }
  const int64_t discard_after = options_.rule.admission.discard_after;
  if (discard_after > 0 && version_ - push.base_version >= discard_after) {
    return RefusalReason::kTooOld;
  }
  if (!correction_.CanCorrect(push, version_, Epoch())) return RefusalReason::kVersionGone;
  return RefusalReason::kNone;
}

void ServerShard::OnRefused(const GradientPush& push, RefusalReason reason) {
  ++refused_[static_cast<size_t>(reason)];
  if (reason == RefusalReason::kUnknownWorker) return;
  if (reason != RefusalReason::kFutureVersion) {
    correction_.OnPush(push.worker, push.base_version);
  }
  if (reason == RefusalReason::kTooOld) {
    clocks_.CatchUp(push.worker);
  } else {
    clocks_.Tick(push.worker);
  }
  if (reason != RefusalReason::kNotFinite) return;
  group_.AddNothing(push.worker);
  UpdateIfFull();
}

std::optional<PullReply> ServerShard::Pull(int worker, std::span<float> out) {
  RT_CHECK(out.size() == weights_.size(), "room for every weight");
  if (!clocks_.MayStart(worker)) {
    waiting_.insert(worker);
    return std::nullopt;
  }
  waiting_.erase(worker);
  correction_.OnPull(worker, version_, weights_);
  correction_.CopyForWorker(weights_, out);
  return PullReply{.version = version_, .images = images_};
}

std::vector<int> ServerShard::TakeReleased() {
  std::vector<int> released;
  for (const int worker : waiting_) {
    if (clocks_.MayStart(worker)) released.push_back(worker);
  }
  for (const int worker : released) waiting_.erase(worker);
  return released;
}

RuleScalars ServerShard::SaveMemory(std::span<float> block) {
  RuleScalars scalars{.updates = updates_, .usual_weight = usual_weight_};
  correction_.SaveMemory(block, &scalars);
  return scalars;
}

void ServerShard::RestoreMemory(std::span<const float> block, const RuleScalars& scalars) {
  updates_ = scalars.updates;
  usual_weight_ = scalars.usual_weight;
  correction_.RestoreMemory(block, scalars, clocks_.workers());
}

bool ServerShard::Finish() {
  if (group_.pushes() == 0) return false;
  Update();
  return true;
}

double ServerShard::Epoch() const {
  return static_cast<double>(images_) / static_cast<double>(options_.images_per_epoch);
}

// A group all of whose pushes were refused is over, too, and changes nothing.
bool ServerShard::UpdateIfFull() {
  if (!group_.Full(Members())) return false;
  if (group_.pushes() == 0) {
    group_.Close();
    return false;
  }
  Update();
  return true;
}

void ServerShard::Update() {
  const double weight = std::exchange(image_weights_, 0) / static_cast<double>(group_.images());
  ++updates_;
  usual_weight_ +=
      (weight - usual_weight_) / std::min(kUsualUpdates, static_cast<double>(updates_));
  const ShardUpdate update{.version = version_,
                           .images_before = images_,
                           .images = group_.images(),
                           .pushes = group_.pushes(),
                           .mean_norm = std::exchange(norms_, 0) / group_.pushes(),
                           .usual_weight = usual_weight_};
  group_.Close();
  correction_.BeforeUpdate(weights_);
  const double learning_rate = apply_(update);
  correction_.AfterUpdate(weights_, learning_rate, updates_);
  images_ += update.images;
  ++version_;
}

}  // namespace ringtail
