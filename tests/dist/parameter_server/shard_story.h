// ShardStory: a shard whose optimizer is plain SGD, and workers that pull and push as a test says.
#ifndef RINGTAIL_TESTS_DIST_PARAMETER_SERVER_SHARD_STORY_H_
#define RINGTAIL_TESTS_DIST_PARAMETER_SERVER_SHARD_STORY_H_

#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "dist/parameter_server/server_shard.h"

namespace ringtail {

class ShardStory {
 public:
  explicit ShardStory(const AsynchronousRule& rule, std::vector<float> weights = {1},
                      float rate = 0.5F, ShardOptions options = {})
      : weights_(std::move(weights)),
        gradients_(weights_.size()),
        rate_(rate),
        shard_(WithRule(options, rule), weights_, gradients_,
               [this](const ShardUpdate& update) { return Apply(update); }) {}
  ShardStory(const ShardStory&) = delete;
  ShardStory& operator=(const ShardStory&) = delete;

  void Join(int workers) {
    for (int worker = 0; worker < workers; ++worker) shard_.Join(worker);
  }
  // Whether the worker got weights; the version is that of its next push.
  bool Pull(int worker) {
    std::vector<float> out(weights_.size());
    const std::optional<PullReply> reply = shard_.Pull(worker, out);
    if (!reply) return false;
    base_[worker] = reply->version;
    pulled_[worker] = out;
    return true;
  }
  PushResult Push(int worker, const std::vector<float>& gradient, int64_t images = 1) {
    return shard_.Push(
        {.worker = worker, .base_version = base_[worker], .images = images, .gradient = gradient});
  }
  PushResult Push(int worker, float gradient) {
    return Push(worker, std::vector<float>(weights_.size(), gradient));
  }

  ServerShard& shard() { return shard_; }
  const std::vector<float>& weights() const { return weights_; }
  const std::vector<float>& pulled(int worker) { return pulled_[worker]; }
  int64_t base(int worker) { return base_[worker]; }
  const std::vector<ShardUpdate>& updates() const { return updates_; }

 private:
  static ShardOptions WithRule(ShardOptions options, const AsynchronousRule& rule) {
    options.rule = rule;
    return options;
  }
  double Apply(const ShardUpdate& update) {
    updates_.push_back(update);
    const auto scale = static_cast<float>(update.scale());
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] -= rate_ * (scale * gradients_[i]);
    return rate_;
  }

  std::vector<float> weights_, gradients_;
  const float rate_;
  std::map<int, int64_t> base_;
  std::map<int, std::vector<float>> pulled_;
  std::vector<ShardUpdate> updates_;
  ServerShard shard_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_PARAMETER_SERVER_SHARD_STORY_H_
