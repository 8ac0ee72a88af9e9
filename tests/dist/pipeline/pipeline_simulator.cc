#include "tests/dist/pipeline/pipeline_simulator.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace ringtail {
namespace {

// What a stage does for an operation, one after the other.
enum class Act { kReceive, kCompute, kSend };

struct Stage {
  size_t operation = 0;
  Act act = Act::kReceive;
};

class StageRunner {
 public:
  StageRunner(const std::vector<std::vector<StageOperation>>& operations, int slots)
      : operations_(operations),
        slots_(slots),
        count_(static_cast<int>(operations.size())),
        stages_(operations.size()) {}

  PipelineRun Run(Rng* rng) {
    std::vector<int> able = AbleStages();
    while (!able.empty()) {
      Continue(able[rng->Below(able.size())]);
      able = AbleStages();
    }
    PipelineRun run{.deadlock = Waiting(), .most_in_lane = most_in_lane_};
    for (const auto& [lane, messages] : lanes_) {
      run.messages_left += static_cast<int>(messages.size());
    }
    return run;
  }

 private:
  using Lane = std::tuple<int, int>;  // from, to: which says what they carry

  bool Ended(int s) const { return stages_[s].operation == operations_[s].size(); }
  const StageOperation& Operation(int s) const { return operations_[s][stages_[s].operation]; }
  static Lane LaneOf(const BoundaryMessage& message) { return {message.from, message.to}; }

  std::vector<int> AbleStages() {
    std::vector<int> able;
    for (int s = 0; s < count_; ++s) {
      if (!Ended(s) && CanContinue(s)) able.push_back(s);
    }
    return able;
  }

  bool CanContinue(int s) {
    if (stages_[s].act == Act::kCompute) return true;
    if (stages_[s].act == Act::kReceive) {
      const auto received = ReceivedBefore(Operation(s), s, count_);
      return !received || !lanes_[LaneOf(*received)].empty();
    }
    const auto sent = SentAfter(Operation(s), s, count_);
    if (!sent || static_cast<int>(lanes_[LaneOf(*sent)].size()) < slots_) return true;
    return slots_ == 0 && lanes_[LaneOf(*sent)].empty() && AsksFor(*sent);
  }

  // Whether the receiver waits for this message now.
  bool AsksFor(const BoundaryMessage& message) const {
    if (Ended(message.to) || stages_[message.to].act != Act::kReceive) return false;
    return ReceivedBefore(Operation(message.to), message.to, count_) == message;
  }

  void Continue(int s) {
    Stage& stage = stages_[s];
    if (stage.act == Act::kReceive) {
      if (const auto received = ReceivedBefore(Operation(s), s, count_)) {
        std::deque<BoundaryMessage>& lane = lanes_[LaneOf(*received)];
        // The first message of the lane is another one: nothing can continue any more.
        if (!(lane.front() == *received)) {
          wrong_ += fmt::format("stage {} receives another message than it waits for; ", s);
        }
        lane.pop_front();
      }
      stage.act = Act::kCompute;
    } else if (stage.act == Act::kCompute) {
      stage.act = Act::kSend;
    } else {
      if (const auto sent = SentAfter(Operation(s), s, count_)) {
        std::deque<BoundaryMessage>& lane = lanes_[LaneOf(*sent)];
        lane.push_back(*sent);
        most_in_lane_ = std::max(most_in_lane_, static_cast<int>(lane.size()));
      }
      stage.act = Act::kReceive;
      ++stage.operation;
    }
  }

  std::string Waiting() const {
    std::string waiting = wrong_;
    for (int s = 0; s < count_; ++s) {
      if (Ended(s)) continue;
      waiting += fmt::format("stage {} {} {}{}; ", s,
                             stages_[s].act == Act::kReceive ? "waits before" : "cannot send after",
                             Operation(s).pass == PassKind::kForward ? 'F' : 'B',
                             Operation(s).micro_batch);
    }
    return waiting;
  }

  const std::vector<std::vector<StageOperation>>& operations_;
  const int slots_, count_;
  std::vector<Stage> stages_;
  std::map<Lane, std::deque<BoundaryMessage>> lanes_;
  int most_in_lane_ = 0;
  std::string wrong_;
};

}  // namespace

PipelineRun RunStages(const std::vector<std::vector<StageOperation>>& operations, int slots,
                      Rng* rng) {
  return StageRunner(operations, slots).Run(rng);
}

}  // namespace ringtail
