// From a config to the rule that it asks for: the rule's row, and on top of it the fields that are
// set.
//
//   rule: STALE_SYNC  bound: 5  ->  at most 5 steps ahead of the slowest; every push is an update;
//                                   weight 1 / tau
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_RULE_CHOICE_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_RULE_CHOICE_H_

#include <string>

#include "core/config/text_config.h"
#include "core/status.h"
#include "dist/parameter_server/asynchronous_rule.h"
#include "dist/parameter_server/parameter_server.pb.h"

namespace ringtail {

// Whether servers hold the weights.
bool UsesServers(const AsynchronousConfig& config);

// InvalidArgument, at its place in the file, if a number is out of range, a field contradicts
// another, or the rule needs one that is not set. `source` may be null; `path`: where the config
// is.
Status ValidateAsynchronous(const AsynchronousConfig& config, const ConfigSource* source,
                            const std::string& path = "dist.asynchronous");

// The config is valid and uses servers.
AsynchronousRule RuleOf(const AsynchronousConfig& config);
// Whether a worker pulls its next weights while it computes: not where an update waits for all, or
// for all but a few, since these weights would be those before the update.
bool PullsAhead(const AsynchronousConfig& config);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_RULE_CHOICE_H_
