// RankIdentity: which rank this process is in its job, whatever has started it.
// Thread-safety: a value type.
#ifndef RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_IDENTITY_H_
#define RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_IDENTITY_H_

#include <string>

namespace ringtail {

inline constexpr int kMaxWorldSize = 1 << 16;

struct RankIdentity {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_world_size = 1;  // on this host, as far as is known
  std::string master_address;  // host or address of rank 0, without port; may be empty (world 1)
  int master_port = 0;         // 0: not known
  std::string source;          // for people: "RANK, WORLD_SIZE" / "Slurm" / "Open MPI" /
                               // "--rank, --world" / "alone"
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_MEMBERSHIP_IDENTITY_RANK_IDENTITY_H_
