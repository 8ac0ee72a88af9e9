// Schedule: one rank's plan, cut into segments, with what each segment has to wait for.
//
// A step of many megabytes is cut into segments (messages), so that round r + 1 can begin with what
// round r has finished. In a ring, with three segments per step and time running to the right:
//
//   round 0   receive   [a][b][c]
//   round 1   send         [a][b][c]      a is sent on while b is still coming in
//
// The order follows from the elements alone. An operation waits for the earlier ones
// that it shares elements with, if one of the two writes them:
//
//   send             reads the elements that it sends: waits for the operation that wrote them last
//   receive-copy     writes: waits for the one that wrote them last, and for those that read that
//   receive-reduce   the same, but only to add up: the message itself may arrive earlier, as it
//                    goes to a staging area. (So does a receive-copy over elements that another
//                    step of its round uses: both ranks may be swapping them.)
//
// One wait is for the wire's sake. After two ranks have exchanged something, each with the other, a
// send to another peer waits for the last segment of that exchange: halving and doubling would have
// both under way, each at half the speed, and a round that ends late on one rank delays all. (Eight
// ranks at 31 Mbit/s, 2.4 MB: 1,585 ms without this wait, 1,113 as priced by plan_cost.h.)
//
// Earlier means: of an earlier round; and within a round, sends before receives (a round sends what
// was there before it), receives in the order of their steps (a sum has one order, whatever comes
// first). So the result is the same bits whatever the timing, and whatever the segment's size.
//
// Operations are numbered so that each waits only for smaller numbers.
// Thread-safety: immutable. Cost to make: O(n log n) for n operations.
#ifndef RINGTAIL_DIST_COLLECTIVES_SCHEDULE_H_
#define RINGTAIL_DIST_COLLECTIVES_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dist/collectives/element_type.h"
#include "dist/collectives/plan.h"
#include "dist/transport/transport.h"

namespace ringtail {

// What is the same on every rank of a collective. Whatever differs, plans included, differs in the
// check of the messages (dist/transport/transport.h): ranks that disagree get an error.
struct Collective {
  std::string name;  // for people, and part of the check: "allreduce, ring"
  ElementType type = ElementType::kFloat;
  int64_t count = 0;  // elements of the array
  // Whether what is sent from some elements arrives at the same ones. (In an all-to-all it does
  // not.)
  bool in_place = true;
  // At most so many bytes in one message. Smaller ones cost more calls, larger ones wait longer for
  // the first and leave the cache; measured over gRPC on loopback, 25 MiB between two ranks:
  // 128 KiB 1.08, 256 KiB 1.20, 512 KiB 1.34 GB/s each way.
  int64_t segment_bytes = 512 << 10;
};

struct ScheduledOperation {
  StepKind kind = StepKind::kSend;
  bool staged = false;  // a receive that goes through the staging area
  int peer = 0;
  int round = 0;
  ElementRange range;
  MessageLabel label;          // without the collective's sequence number
  int waits_for = 0;           // how many operations
  std::vector<int> followers;  // the operations that wait for this one
};

class Schedule {
 public:
  // `plan` is the plan of `rank` for an array of collective.count elements. Both ends of a message
  // must name the same range.
  Schedule(const Plan& plan, int rank, Collective collective);

  const Collective& collective() const { return collective_; }
  int rounds() const { return rounds_; }
  std::span<const ScheduledOperation> operations() const { return operations_; }
  int64_t largest_staged_elements() const { return largest_staged_elements_; }

 private:
  Collective collective_;
  int rounds_ = 0;
  std::vector<ScheduledOperation> operations_;
  int64_t largest_staged_elements_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_SCHEDULE_H_
