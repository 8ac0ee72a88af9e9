// Story: a world as rank 0's judge hears of it, while time passes (dist/liveness/liveness_judge.h).
#ifndef RINGTAIL_TESTS_DIST_LIVENESS_JUDGE_STORY_H_
#define RINGTAIL_TESTS_DIST_LIVENESS_JUDGE_STORY_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/liveness/liveness_judge.h"

namespace ringtail {

inline std::string DescribeInStory(int rank) {
  return fmt::format("rank {} (node{}, pid 7{})", rank, rank, rank);
}

// Rank 0 of a world, as time passes. Limits are as they are in use: 1 s, 10 s, 10 s, 10 min.
class Story {
 public:
  struct Character {
    Phase phase = Phase::kExchange;
    uint64_t step_us = 300'000;
    bool heard = true;    // its heartbeats come, and are heard by others
    bool reaches = true;  // them and data: to this rank
    bool moving = false;  // its counter moves
    bool last = false;
    uint64_t counter = 1;
    std::chrono::milliseconds unchanged{0};
  };

  explicit Story(int world_size, const LivenessLimits& limits = {})
      : ranks_(world_size), judge_(0, world_size, limits, DescribeInStory, {}) {}

  Character& rank(int rank) { return ranks_[rank]; }
  LivenessJudge& judge() { return judge_; }
  bool data_moves = false;  // between the others
  void Skip(std::chrono::milliseconds time) {
    now_ += time;
  }  // this process does nothing meanwhile

  // Until the first verdict, or for so long. A heartbeat of each rank comes once a second.
  std::optional<Verdict> Play(std::chrono::milliseconds time) {
    constexpr std::chrono::milliseconds kWake{250};
    for (std::chrono::milliseconds played{0}; played < time; played += kWake) {
      now_ += kWake;
      judge_.Wake(now_);
      ++wakes_;
      for (Character& rank : ranks_) {
        rank.unchanged = rank.moving ? std::chrono::milliseconds{0} : rank.unchanged + kWake;
        rank.counter += rank.moving;
      }
      TellOwn();
      if (wakes_ % 4 == 0) TellOthers();
      if (auto verdict = judge_.Judge()) {
        since_start_ = now_.time_since_epoch();
        return verdict;
      }
    }
    return {};
  }

  // When the verdict fell.
  std::chrono::milliseconds verdict_at() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(since_start_);
  }

 private:
  void TellOwn() {
    const Character& own = ranks_[0];
    (void)judge_.OnOwnProgress({.phase = own.phase, .counter = own.counter, .step = 17},
                               {.step_us = own.step_us, .compute_us = 0});
  }
  void TellOthers() {
    const uint32_t beat = wakes_;
    for (size_t peer = 1; peer < ranks_.size(); ++peer) {
      if (ranks_[peer].heard) beats_[peer] = beat;
    }
    moved_ += data_moves;
    for (int peer = 1; peer < static_cast<int>(ranks_.size()); ++peer) {
      const Character& rank = ranks_[peer];
      if (!rank.heard || !rank.reaches) continue;
      judge_.OnArrival(peer);
      const Heartbeat told = {.phase = rank.phase,
                              .last = rank.last,
                              .step = 17,
                              .counter = rank.counter,
                              .unchanged_ms = static_cast<uint64_t>(rank.unchanged.count()),
                              .step_us = rank.step_us,
                              .moved = moved_,
                              .beats = beats_};
      EXPECT_TRUE(judge_.OnHeartbeat(peer, told).ok());
    }
  }

  std::vector<Character> ranks_;
  LivenessJudge judge_;
  std::vector<uint32_t> beats_ = std::vector<uint32_t>(ranks_.size());
  uint64_t moved_ = 0;
  LivenessJudge::TimePoint now_;
  LivenessJudge::TimePoint::duration since_start_{};
  int wakes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_LIVENESS_JUDGE_STORY_H_
