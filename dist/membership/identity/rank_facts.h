// RankFacts: what a rank tells the rendezvous about itself, and WorldTable: what the rendezvous
// tells every rank when all are there. Both come from authenticated ranks, and are checked all the
// same: a broken rank must not break others.
// Thread-safety: value types.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_FACTS_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_FACTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "dist/membership/fingerprint.h"
#include "dist/membership/identity/rank_identity.h"

namespace ringtail {

struct RankFacts {
  int rank = 0, world_size = 1;
  uint32_t generation = 0;  // 0: any
  std::string instance;  // a random name of this attempt to join: the next attempt has another one
  std::string host_name, host_key;
  std::string memory_key;  // host_identity.h SharedMemoryKey; empty: does not share memory
  int64_t pid = 0;
  std::string own_address;     // of its end of the connection to the rendezvous (no port)
  std::string master_address;  // of the other end, as it has dialled it
  FingerprintFields fingerprint, about;

  std::string Describe() const;      // "rank 3 (node7, pid 4711)"
  std::string DescribeHost() const;  // "node7, pid 4711"
};

struct WorldTable {
  uint32_t generation = 0;
  std::string salt;
  std::vector<RankFacts> ranks;        // by rank
  std::vector<std::string> addresses;  // of their data listeners, by rank
};

inline constexpr size_t kMaxFactsBytes = 512 << 10;
inline constexpr size_t kMaxWorldTableBytes = 256 << 20;

std::string EncodeFacts(const RankFacts& facts);
StatusOr<RankFacts> DecodeFacts(const std::string& bytes);

std::string EncodeWorldTable(const WorldTable& table);  // without the fingerprints
StatusOr<WorldTable> DecodeWorldTable(const std::string& bytes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_FACTS_H_
