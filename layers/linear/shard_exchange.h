// ShardExchange: what ranks that divide layers among them send each other during a pass.
//
// Begin... hands an array to another thread, which sends and receives while the caller computes;
// the caller leaves the array alone until Wait for that call has returned. Calls are carried out in
// their order, which is the same on all ranks, as are the sizes of the arrays.
// After a failure of another rank or the network the arrays hold anything: the implementer records
// the error, every call returns at once, and the caller discards the step.
// Thread-safety: the trainer thread.
#ifndef RINGTAIL_LAYERS_LINEAR_SHARD_EXCHANGE_H_
#define RINGTAIL_LAYERS_LINEAR_SHARD_EXCHANGE_H_

#include <cstdint>
#include <span>

#include "layers/linear/linear_shard.h"

namespace ringtail {

class ShardExchange {
 public:
  virtual ~ShardExchange() = default;

  // `array` is one part of equal size from each rank, by rank; this rank's is there, and then all
  // are. Returns the number of the call.
  virtual int64_t BeginAllGather(std::span<float> array) = 0;
  // `array` is one part of equal size for each rank; afterwards this rank's part is the sum of what
  // all ranks had for it, and the others hold anything.
  virtual int64_t BeginReduceScatter(std::span<float> array) = 0;
  // `array` is a block of equal size to each rank, then as many from each.
  virtual int64_t BeginAllToAll(std::span<float> array) = 0;
  // Until that call and all before it are done.
  virtual void Wait(int64_t call) = 0;
  virtual void WaitForAll() = 0;
};

// As if the other ranks had sent zeros, at once: for a pass that one rank makes alone, to look for
// what is not finite in its own rows.
class AloneShards : public ShardExchange {
 public:
  explicit AloneShards(const LinearShard& shard) : shard_(shard) {}
  int64_t BeginAllGather(std::span<float> array) override;
  int64_t BeginReduceScatter(std::span<float> array) override;
  int64_t BeginAllToAll(std::span<float> array) override;
  void Wait(int64_t) override {}
  void WaitForAll() override {}

 private:
  const LinearShard shard_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LINEAR_SHARD_EXCHANGE_H_
