// Plan: what one rank does in a collective, as data. Every algorithm is a pure function
// (rank, world, count) -> Plan, without a socket or a thread in it: a simulator proves it for every
// world, a cost model prices it, and one executor runs it.
//
// A plan works on one array of `count` elements, the same size on every rank, and is a sequence of
// rounds. The steps of a round may run at the same time; a round comes after the one before:
//
//   kSend           sends elements [offset, offset + count) to the peer
//   kReceiveReduce  receives as many from the peer, and adds them to its own
//   kReceiveCopy    receives as many from the peer, in place of its own
//
// Where steps of one round share elements, there is still only one result: sends send what was
// there before the round (so two ranks can swap their sums), and what is received for the same
// elements takes effect in the order of the steps (so a rank can add up what comes from many).
//
// Between two ranks, the k-th send of one meets the k-th receive of the other, of the same count. A
// step of no elements is not sent, and may be left out on both sides. An executor may start a step
// early if it touches no element that an earlier round still changes or reads.
//
// The order of additions on each element is part of the plan, so the sums have the same bits in
// every run. They have the same bits on every rank, too, where each sum is made in one place and
// copied, or where two ranks make it as a + b and b + a.
#ifndef RINGTAIL_DIST_COLLECTIVES_PLAN_H_
#define RINGTAIL_DIST_COLLECTIVES_PLAN_H_

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace ringtail {

enum class StepKind { kSend, kReceiveReduce, kReceiveCopy };

// Elements [offset, offset + count).
struct ElementRange {
  int64_t offset = 0, count = 0;

  int64_t end() const { return offset + count; }
  bool operator==(const ElementRange&) const = default;
};

struct Step {
  StepKind kind = StepKind::kSend;
  int peer = 0;
  ElementRange range;

  static Step Send(int peer, ElementRange range) { return {StepKind::kSend, peer, range}; }
  static Step ReceiveReduce(int peer, ElementRange range) {
    return {StepKind::kReceiveReduce, peer, range};
  }
  static Step ReceiveCopy(int peer, ElementRange range) {
    return {StepKind::kReceiveCopy, peer, range};
  }
  bool operator==(const Step&) const = default;
};

struct Round {
  std::vector<Step> steps;

  bool operator==(const Round&) const = default;
};

struct Plan {
  std::vector<Round> rounds;

  // One more round of those steps that have elements; no round if none has.
  void AddRound(std::span<const Step> steps);
  void AddRound(std::initializer_list<Step> steps);
  void Append(Plan next);  // `next` after this one
  bool operator==(const Plan&) const = default;
};

// A reduction played backwards distributes its result: the last round first, what was received and
// added is now sent, what was sent is now received. If every sum of `reduction` is finished in one
// place, `reduction` and then Backwards(reduction) is an allreduce.
Plan Backwards(const Plan& reduction);

// The plan of member i of a group as a plan of the world, in which member i is ranks[i].
Plan WithPeers(Plan plan, std::span<const int> ranks);

// Part `i` of `count` elements that are divided into `parts` as evenly as possible: the first
// count % parts have one more. Parts may be empty.
ElementRange EvenPart(int64_t count, int64_t parts, int64_t i);

// Ends the process unless 0 <= rank < world and count >= 0: what every algorithm asks for.
void CheckPlanArguments(int rank, int world, int64_t count);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_PLAN_H_
