#include "dist/membership/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "dist/transport/door/socket_address.h"

namespace ringtail {
namespace {

// For large worlds, where the full list would not be read.
constexpr size_t kMaxNamed = 16;

std::string List(const std::vector<std::string>& items) {
  std::string list;
  for (size_t i = 0; i < items.size() && i < kMaxNamed; ++i) {
    list += (i == 0 ? "" : ", ") + items[i];
  }
  if (items.size() > kMaxNamed) list += fmt::format(" and {} more", items.size() - kMaxNamed);
  return list;
}

Status WorldSizesDiffer(const RankFacts& a, const RankFacts& b) {
  return InvalidArgument(fmt::format(
      "{} was started for a world of {} and {} for a world of {}: the world size must be the same "
      "on all ranks",
      a.Describe(), a.world_size, b.Describe(), b.world_size));
}

Status FingerprintsDiffer(const RankFacts& a, const RankFacts& b, const Disagreement& what) {
  return InvalidArgument(fmt::format(
      "{} and {} disagree about {}: {} has {}, {} has {}{}", a.Describe(), b.Describe(), what.name,
      fmt::format("rank {}", a.rank), what.expected, fmt::format("rank {}", b.rank), what.found,
      what.others.empty() ? "" : "; they also disagree about " + List(what.others)));
}

}  // namespace

Roster::Roster(RankFacts reference)
    : reference_(std::move(reference)), ranks_(reference_.world_size) {}

Status Roster::Add(const RankFacts& facts) {
  if (facts.world_size != world_size()) return WorldSizesDiffer(reference_, facts);
  Entry& entry = ranks_[facts.rank];
  const bool other_process =
      facts.rank == 0 ? facts.instance != reference_.instance
                      : entry.facts.has_value() && entry.facts->instance != facts.instance;
  if (other_process) {
    return AlreadyExists(fmt::format(
        "two processes say that they are rank {}: {} and {}; each must have a number of its own",
        facts.rank, (facts.rank == 0 ? reference_ : *entry.facts).DescribeHost(),
        facts.DescribeHost()));
  }
  if (const auto what = CompareFingerprints(reference_.fingerprint, facts.fingerprint)) {
    return FingerprintsDiffer(reference_, facts, *what);
  }
  if (!entry.facts.has_value()) ++here_;
  entry.facts = facts;
  entry.address.reset();
  return {};
}

void Roster::Remove(const RankFacts& facts) {
  Entry& entry = ranks_[facts.rank];
  if (!entry.facts.has_value() || entry.facts->instance != facts.instance) return;
  entry.gone = facts.DescribeHost();
  entry.facts.reset();
  entry.address.reset();
  --here_;
}

const RankFacts* Roster::Find(int rank) const {
  if (rank < 0 || rank >= world_size() || !ranks_[rank].facts.has_value()) return nullptr;
  return &*ranks_[rank].facts;
}

Status Roster::Missing(std::chrono::milliseconds waited) const {
  const double seconds = std::chrono::duration<double>(waited).count();
  std::vector<std::string> missing, here, silent;
  for (int rank = 0; rank < world_size(); ++rank) {
    const Entry& entry = ranks_[rank];
    if (entry.facts.has_value()) {
      here.push_back(fmt::format("{} ({})", rank, entry.facts->host_name));
      if (!entry.address.has_value()) silent.push_back(here.back());
    } else if (entry.gone.empty()) {
      missing.push_back(std::to_string(rank));
    } else {
      missing.push_back(fmt::format("{} (which came from {} and left again)", rank, entry.gone));
    }
  }
  std::string sentence;
  if (missing.empty()) {
    sentence = fmt::format("all {} ranks have come, but where to dial {} is not known within {} s",
                           world_size(), List(silent), seconds);
  } else {
    const bool one = missing.size() == 1;
    sentence = fmt::format("{} {} of {} {} not come within {} s; ", one ? "rank" : "ranks",
                           List(missing), world_size(), one ? "has" : "have", seconds);
    sentence += here.empty()
                    ? "no rank is here"
                    : fmt::format("here {} {}", here.size() == 1 ? "is" : "are", List(here));
  }
  return {StatusCode::kDeadlineExceeded, sentence};
}

std::string Roster::ListenAt(int rank) const {
  RT_CHECK(Find(rank) != nullptr, "asked about a rank that is here");
  const std::string& own = Find(rank)->own_address;
  if (!IsLoopbackAddress(own)) return own;
  for (const Entry& entry : ranks_) {
    if (entry.facts.has_value() && !IsLoopbackAddress(entry.facts->own_address)) {
      return entry.facts->master_address;
    }
  }
  return own;
}

void Roster::SetListening(int rank, std::string address) {
  RT_CHECK(Find(rank) != nullptr, "a rank that is here listens");
  ranks_[rank].address = std::move(address);
}

bool Roster::AllListening() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const Entry& entry) { return entry.address.has_value(); });
}

WorldTable Roster::Table(uint32_t generation, std::string salt) const {
  WorldTable table{.generation = generation, .salt = std::move(salt)};
  for (const Entry& entry : ranks_) {
    table.ranks.push_back(*entry.facts);
    table.addresses.push_back(*entry.address);
  }
  return table;
}

}  // namespace ringtail
