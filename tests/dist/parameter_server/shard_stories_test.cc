// What holds for every rule, whatever workers do: the same story gives the same bits, some worker
// may always start, and every push that is taken is in exactly one update.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <vector>

#include "core/random.h"
#include "dist/parameter_server/presets.h"
#include "tests/dist/parameter_server/shard_story.h"

namespace ringtail {
namespace {

using Config = AsynchronousConfig;

constexpr size_t kSize = 5;
constexpr int kMostWorkers = 5;

struct End {
  std::vector<float> weights;
  std::vector<int64_t> histogram;
  int64_t version = 0, images = 0;
};

AsynchronousRule RandomRule(Rng* rng) {
  const auto preset = static_cast<Config::Rule>(1 + rng->Below(Config::Rule_ARRAYSIZE - 1));
  AsynchronousRule rule = rng->Below(2) == 0 ? PublishedRule(preset) : SafeRule(preset);
  if (preset == Config::ADA_DELAY) rule.weight.rate = 0.1;
  if (preset == Config::RINGMASTER) {
    rule.admission.discard_after = static_cast<int64_t>(1 + rng->Below(4));
  }
  if (preset == Config::SOFT_SYNC) rule.grouping.splits = static_cast<int>(1 + rng->Below(4));
  return rule;
}

// Plays one event of a worker that is there: a push if it has pulled, else a pull.
class Players {
 public:
  Players(ShardStory* story, Rng* rng) : story_(story), rng_(rng) {}

  void Join() {
    story_->shard().Join(next_);
    has_weights_[next_++] = false;
  }
  void Remove(int worker) {
    story_->shard().Remove(worker);
    has_weights_.erase(worker);
  }
  void Act(int worker) {
    bool& has_weights = has_weights_.at(worker);
    if (!has_weights) {
      has_weights = story_->Pull(worker);
      return;
    }
    std::vector<float> gradient(kSize);
    for (float& g : gradient) g = rng_->Normal() * 0.1F;
    const bool finite = rng_->Below(12) > 0;
    if (!finite) gradient[rng_->Below(kSize)] = NAN;
    const auto images = static_cast<int64_t>(1 + rng_->Below(4));
    const PushResult result = story_->Push(worker, gradient, images);
    ASSERT_EQ(result.reason == RefusalReason::kNotFinite, !finite);
    if (result.outcome != PushOutcome::kRefused) taken_ += images;
    has_weights = false;
  }

  int size() const { return static_cast<int>(has_weights_.size()); }
  int Any() const {
    return std::next(has_weights_.begin(), static_cast<int64_t>(rng_->Below(size())))->first;
  }
  // Someone can push, or get weights to compute with.
  bool SomeoneMoves() const {
    for (const auto& [worker, has_weights] : has_weights_) {
      if (has_weights || story_->shard().clocks().MayStart(worker)) return true;
    }
    return has_weights_.empty();
  }
  int64_t taken() const { return taken_; }

 private:
  ShardStory* const story_;
  Rng* const rng_;
  std::map<int, bool> has_weights_;
  int next_ = 0;
  int64_t taken_ = 0;  // images
};

void PlayStory(uint64_t number, End* end) {
  Rng rng(RngKey(number).With(kTestStream));
  ShardStory story(RandomRule(&rng), std::vector<float>(kSize, 1), 0.1F,
                   {.images_per_epoch = 20, .versions = static_cast<int>(1 + rng.Below(8))});
  Players players(&story, &rng);
  for (int event = 0; event < 80; ++event) {
    const uint64_t kind = rng.Below(30);
    if (players.size() == 0 || (kind == 0 && players.size() < kMostWorkers)) {
      players.Join();
    } else if (kind == 1) {
      players.Remove(players.Any());
    } else {
      players.Act(players.Any());
    }
    ASSERT_TRUE(players.SomeoneMoves());
  }
  story.shard().Finish();
  const int64_t applied =
      std::accumulate(story.updates().begin(), story.updates().end(), int64_t{0},
                      [](int64_t sum, const ShardUpdate& update) { return sum + update.images; });
  ASSERT_EQ(applied, players.taken());
  ASSERT_EQ(story.shard().images(), players.taken());
  ASSERT_EQ(story.shard().version(), static_cast<int64_t>(story.updates().size()));
  *end = {story.weights(), story.shard().staleness().histogram(), story.shard().version(),
          story.shard().images()};
}

TEST(ShardStoriesTest, HoldForEveryRule) {
  int64_t versions = 0;
  for (uint64_t number = 0; number < 5000; ++number) {
    End first, second;
    PlayStory(number, &first);
    ASSERT_FALSE(HasFatalFailure()) << "story " << number;
    PlayStory(number, &second);
    for (size_t i = 0; i < kSize; ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(first.weights[i]),
                std::bit_cast<uint32_t>(second.weights[i]))
          << "story " << number;
      ASSERT_TRUE(std::isfinite(first.weights[i])) << "story " << number;
    }
    ASSERT_EQ(first.histogram, second.histogram);
    versions += first.version;
  }
  EXPECT_GT(versions, 50'000);
}

}  // namespace
}  // namespace ringtail
