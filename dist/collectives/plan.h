// Plan: what one rank does in a collective, as data. Every algorithm is a pure function
// (rank, world, count) -> Plan, without a socket or a thread in it: a simulator proves it for every
// world, a cost model prices it, and one executor runs it.
//
// A plan works on one array of `count` elements, the same size on every rank, and is a sequence of
// rounds. The steps of a round are independent of each other; a round comes after the one before:
//
//   kSend           sends elements [offset, offset + count) to the peer
//   kReceiveReduce  receives as many from the peer, and adds them to its own
//   kReceiveCopy    receives as many from the peer, in place of its own
//
// Between two ranks, the k-th send of one meets the k-th receive of the other, of the same count. A
// step of no elements is not sent, and may be left out on both sides. An executor may start a step
// early if it touches no element that an earlier round still changes or reads.
#ifndef RINGTAIL_DIST_COLLECTIVES_PLAN_H_
#define RINGTAIL_DIST_COLLECTIVES_PLAN_H_

#include <cstdint>
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

  bool operator==(const Step&) const = default;
};

struct Round {
  std::vector<Step> steps;

  bool operator==(const Round&) const = default;
};

struct Plan {
  std::vector<Round> rounds;

  bool operator==(const Plan&) const = default;
};

// Part `i` of `count` elements that are divided into `parts` as evenly as possible: the first
// count % parts have one more. Parts may be empty.
ElementRange EvenPart(int64_t count, int64_t parts, int64_t i);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_PLAN_H_
