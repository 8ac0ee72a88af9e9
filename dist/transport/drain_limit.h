// How long to wait for the operations of a transport that has ended. It completes all of them at
// once; this long is for machines that do not get to it. Thread-safety: a constant.
#ifndef RINGTAIL_DIST_TRANSPORT_DRAIN_LIMIT_H_
#define RINGTAIL_DIST_TRANSPORT_DRAIN_LIMIT_H_

#include <chrono>

namespace ringtail {

inline constexpr std::chrono::minutes kDrainLimit{5};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_TRANSPORT_DRAIN_LIMIT_H_
