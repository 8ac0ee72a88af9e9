// What a message costs on a link: n bytes take alpha + n beta seconds, and adding them takes n
// gamma. Links carry messages in both directions at once (Hockney, "The communication challenge for
// MPP", 1994).
#ifndef RINGTAIL_DIST_COLLECTIVES_LINK_MODEL_H_
#define RINGTAIL_DIST_COLLECTIVES_LINK_MODEL_H_

#include <cstdint>

namespace ringtail {

inline constexpr int64_t kElementBytes = sizeof(float);  // gradients travel as float32

struct LinkModel {
  double latency_s = 0;                // alpha
  double seconds_per_byte = 0;         // beta: 1 / bandwidth
  double reduce_seconds_per_byte = 0;  // gamma
};

struct NetworkModel {
  LinkModel within_host, between_hosts;
  // Processor seconds of a rank, all its threads and the kernel for it, per byte and per message that
  // it sends to other hosts; receiving as many included. 0: not measured.
  double cpu_seconds_per_byte = 0, cpu_seconds_per_message = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COLLECTIVES_LINK_MODEL_H_
