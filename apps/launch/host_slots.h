// The hosts of a job and their numbers of ranks: `--hosts a:2,b:2` or a hostfile, one host per
// line:
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
  int slots = 1;  // the most ranks that it takes
};

// "a:2,b" and Slurm's notation "n[1-4]:2". IPv6 addresses are written in brackets: "[fe80::1]:2".
StatusOr<std::vector<HostSlots>> ParseHosts(const std::string& text);

StatusOr<std::vector<HostSlots>> ParseHostfile(const std::string& name, std::string_view text);

// The hosts that `ranks` ranks fill, in order, with the number of ranks as slots. 0: all slots.
StatusOr<std::vector<HostSlots>> PlaceRanks(std::vector<HostSlots> hosts, int ranks);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_HOST_SLOTS_H_
