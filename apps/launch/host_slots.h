// Which host gets how many ranks: `--hosts a:2,b:2` or a hostfile, one host per line:
//
//   # the fast ones first
//   node1 slots=4
//   node2:4
//   node3                 one slot
//
// Ranks fill the hosts in the order given. Thread-safety: functions without state.
// Errors: InvalidArgument with the flag, or file and line.
#ifndef RINGTAIL_APPS_LAUNCH_HOST_SLOTS_H_
#define RINGTAIL_APPS_LAUNCH_HOST_SLOTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct HostSlots {
  std::string host;
  int slots = 1;  // ranks that it takes
};

// "a:2,b" and, as Slurm writes it, "n[1-4]:2". IPv6 addresses stand in brackets with a colon in them.
StatusOr<std::vector<HostSlots>> ParseHosts(const std::string& text);

StatusOr<std::vector<HostSlots>> ParseHostfile(const std::string& name, std::string_view text);

// The hosts that `ranks` ranks need, with as many slots as they fill. 0 ranks: all slots.
StatusOr<std::vector<HostSlots>> PlaceRanks(std::vector<HostSlots> hosts, int ranks);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_HOST_SLOTS_H_
