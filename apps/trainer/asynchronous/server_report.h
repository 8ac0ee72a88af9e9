// What is said of an asynchronous run: its setting in words, and lines of metrics.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_REPORT_H_
#define RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_REPORT_H_

#include <cstdint>
#include <string>

#include "core/storage/metrics.h"
#include "dist/parameter_server/parameter_server.pb.h"
#include "dist/parameter_server/wire/update_counts.h"

namespace ringtail {

// "at most 3 steps ahead of the slowest; every push is an update; weight 1 / tau; the next weights
// are pulled while a gradient is computed"
std::string DescribeRule(const AsynchronousConfig& config);
// The same with "2 servers for 4 workers: " before it.
std::string DescribeServers(const AsynchronousConfig& config, int servers, int workers);

// A line of what servers have counted, in `seconds`. Loss and accuracy are of the images whose
// gradients were taken.
Metrics MetricsOfUpdates(const UpdateCounts& counts, double seconds);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_ASYNCHRONOUS_SERVER_REPORT_H_
