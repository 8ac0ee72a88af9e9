// When a wait ends. Thread-safety: a value type.
#ifndef RINGTAIL_DIST_TRANSPORT_DEADLINE_H_
#define RINGTAIL_DIST_TRANSPORT_DEADLINE_H_

#include <chrono>

namespace ringtail {

using Deadline = std::chrono::steady_clock::time_point;

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DEADLINE_H_
