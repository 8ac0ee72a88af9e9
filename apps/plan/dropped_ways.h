// What a run gives up that is told to train another way: the fields, as for --set.
//
//   config                                 given up by
//   dist.local.period: 8                   dist.local={}
//   dist.compression.scheme.hylo {}        dist.compression={}
//   dist.asynchronous.rule: STALE_SYNC     dist.asynchronous={}
//   dist.model_parallel.linear: ALL        dist.model_parallel={}
//   ... scheme.dgc { momentum: 0.9 }       dist.compression={}  optim.sgd.momentum=0.9
//   dist.asynchronous.rule: DANA           dist.asynchronous={} optim.sgd.momentum=0.9
//
// The last two keep the momentum themselves, of an optimizer that has none, which would then train
// without any. Thread-safety: a pure function.
#ifndef RINGTAIL_APPS_PLAN_DROPPED_WAYS_H_
#define RINGTAIL_APPS_PLAN_DROPPED_WAYS_H_

#include <string>
#include <vector>

#include "apps/run.pb.h"

namespace ringtail {

// What of the config stays.
struct KeptWays {
  bool rounds = false;          // dist.local
  bool compression = false;     // dist.compression
  bool momentum = false;        // that of dgc
  bool divided_layers = false;  // dist.model_parallel.linear
};

std::vector<std::string> SettingsWithoutOtherWays(const RunConfig& config, const KeptWays& kept);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_DROPPED_WAYS_H_
