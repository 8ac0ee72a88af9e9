// MemoryPlan: places buffers with known lifetimes in one block, so that buffers that never live at
// the same time share memory.
//
//   time ->        0   1   2   3   4   5
//   A  64 KiB      [=======]                    A and C share an address,
//   B  32 KiB          [===========]            B lies after both
//   C  64 KiB                  [=======]
//
// Greedy by size (largest first, each at the lowest offset that is free for its whole life): within
// a few percent of the optimum on network graphs (Pisarchyk & Lee 2020, "Efficient Memory
// Management for Deep Neural Net Inference", algorithm 3).
// Cost: O(n^2) for n buffers, once per net.
#ifndef RINGTAIL_LAYERS_NET_MEMORY_PLAN_H_
#define RINGTAIL_LAYERS_NET_MEMORY_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

namespace ringtail {

inline constexpr int64_t kMemoryAlignment = 64;  // bytes: a cache line, a vector of AVX-512

struct MemoryRequest {
  int64_t bytes = 0;        // 0: gets offset 0 and conflicts with nothing
  int first = 0, last = 0;  // steps of time in which it must keep its content, both inclusive
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // one per request, multiples of kMemoryAlignment
  int64_t total_bytes = 0;
};

MemoryPlan PlanMemory(std::span<const MemoryRequest> requests);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_MEMORY_PLAN_H_
