// LiveRoster: who is in a world that outlives its losses, and who left or joined when.
//
//   generation   change                                          in
//       0                                                        0 1 2 3
//       1        rank 2 left at version 170: "lost rank 2 ..."   0 1   3
//       2        rank 4 joined at version 205                    0 1   3 4
//
// One rank, the leader, decides: it lets ranks leave and join, and tells the others each change.
// They apply the changes in the same order, and so every rank comes to the same generations. A rank
// that has missed some asks for those Since the generation that it knows; one that hears a change
// twice is not disturbed.
//
// A version is that of the leader's weights; a rank that left at version v has no part in what
// comes after v. Numbers are never dense again: a rank that is lost leaves a gap, and one that
// joins gets the next number that no rank has had, so that what an old one still sends cannot be
// taken for its own.
//
// Pure: no thread, socket or clock. Thread-safety: none. Cost: one entry for each change.
#ifndef RINGTAIL_DIST_MEMBERSHIP_LIVE_ROSTER_H_
#define RINGTAIL_DIST_MEMBERSHIP_LIVE_ROSTER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct RosterChange {
  enum class Kind : uint8_t { kLeft = 1, kJoined = 2 };

  uint32_t generation = 0;  // of the roster that has this change
  Kind kind = Kind::kLeft;
  int rank = 0;
  uint64_t version = 0;  // of the leader's weights, at which
  std::string cause;     // why it left

  bool operator==(const RosterChange&) const = default;
};

class LiveRoster {
 public:
  // Generation 0: ranks 0 to `ranks` - 1 are in.
  explicit LiveRoster(int ranks);

  uint32_t generation() const { return static_cast<uint32_t>(changes_.size()); }
  const std::set<int>& members() const { return members_; }
  bool Has(int rank) const { return members_.contains(rank); }
  int leader() const { return *members_.begin(); }
  // The member after `rank`, which need not be one itself; after the last comes the first. Nothing:
  // no other is left.
  std::optional<int> Successor(int rank) const;

  // ---- the leader
  // `version` never goes back. Nothing if the rank is not in: it has been heard of twice.
  std::optional<RosterChange> Leave(int rank, uint64_t version, std::string cause);
  // The rank that joins gets the number in the change.
  RosterChange Join(uint64_t version);
  // What a rank must hear that knows the roster of `generation`; empty if it is not behind.
  std::span<const RosterChange> Since(uint32_t generation) const;

  // ---- the others
  // OK also for a change that is known. DataLoss, and nothing has changed, for one that does not
  // follow: a generation that is left out, a rank that is not in, another change of a known one.
  Status Apply(const RosterChange& change);

 private:
  void Do(const RosterChange& change);
  uint64_t version() const { return changes_.empty() ? 0 : changes_.back().version; }

  std::set<int> members_;
  int next_rank_;  // that no rank has had
  std::vector<RosterChange> changes_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_LIVE_ROSTER_H_
