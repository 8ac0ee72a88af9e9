#include "dist/membership/live_roster.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"

namespace ringtail {

LiveRoster::LiveRoster(int ranks) : next_rank_(ranks) {
  RT_CHECK(ranks > 0, "a world has at least one rank");
  for (int rank = 0; rank < ranks; ++rank) members_.insert(rank);
}

std::optional<int> LiveRoster::Successor(int rank) const {
  auto next = members_.upper_bound(rank);
  if (next == members_.end()) next = members_.begin();
  if (*next == rank) return {};
  return *next;
}

std::optional<RosterChange> LiveRoster::Leave(int rank, uint64_t version, std::string cause) {
  RT_CHECK(version >= this->version(), "versions do not go back");
  if (!Has(rank)) return {};
  RT_CHECK(members_.size() > 1, "somebody is left");
  Do({.generation = generation() + 1,
      .kind = RosterChange::Kind::kLeft,
      .rank = rank,
      .version = version,
      .cause = std::move(cause)});
  return changes_.back();
}

RosterChange LiveRoster::Join(uint64_t version) {
  RT_CHECK(version >= this->version(), "versions do not go back");
  Do({.generation = generation() + 1,
      .kind = RosterChange::Kind::kJoined,
      .rank = next_rank_,
      .version = version,
      .cause = {}});
  return changes_.back();
}

std::span<const RosterChange> LiveRoster::Since(uint32_t generation) const {
  const auto all = std::span(changes_);
  return generation < all.size() ? all.subspan(generation) : std::span<const RosterChange>();
}

Status LiveRoster::Apply(const RosterChange& change) {
  const auto refuse = [&](const std::string& why) {
    return DataLoss(fmt::format("change {} of the ranks that take part ({} {} at version {}): {}",
                                change.generation, change.rank,
                                change.kind == RosterChange::Kind::kLeft ? "left" : "joined",
                                change.version, why));
  };
  if (change.generation >= 1 && change.generation <= generation()) {
    if (changes_[change.generation - 1] == change) return {};
    return refuse("another change has this number");
  }
  if (change.generation != generation() + 1) {
    return refuse(fmt::format("this rank knows {}", generation()));
  }
  if (change.version < version()) return refuse(fmt::format("version {} is behind", version()));
  switch (change.kind) {
    case RosterChange::Kind::kLeft:
      if (!Has(change.rank)) return refuse("it does not take part");
      if (members_.size() == 1) return refuse("it is the last one");
      break;
    case RosterChange::Kind::kJoined:
      if (change.rank != next_rank_) return refuse(fmt::format("rank {} is next", next_rank_));
      break;
    default:
      return refuse("no such kind");
  }
  Do(change);
  return {};
}

void LiveRoster::Do(const RosterChange& change) {
  if (change.kind == RosterChange::Kind::kLeft) {
    members_.erase(change.rank);
  } else {
    members_.insert(change.rank);
    ++next_rank_;
  }
  changes_.push_back(change);
}

}  // namespace ringtail
