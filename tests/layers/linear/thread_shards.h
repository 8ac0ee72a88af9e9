// Ranks as threads that divide a layer among them, for tests.
#ifndef RINGTAIL_TESTS_LAYERS_LINEAR_THREAD_SHARDS_H_
#define RINGTAIL_TESTS_LAYERS_LINEAR_THREAD_SHARDS_H_

#include <barrier>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "layers/linear/shard_exchange.h"

namespace ringtail {

// When arrays are exchanged: who reads too early sees what was there with kAtWait, who overwrites
// too early what he should not with kAtBegin.
enum class ExchangeMoment { kAtBegin, kAtWait };

class ThreadShards {
 public:
  ThreadShards(int ranks, ExchangeMoment moment)
      : moment_(moment), arrays_(ranks), arrived_(ranks) {}

  class Rank : public ShardExchange {
   public:
    Rank(ThreadShards* all, int rank) : all_(all), rank_(rank) {}
    int64_t BeginAllGather(std::span<float> array) override;
    int64_t BeginReduceScatter(std::span<float> array) override;
    int64_t BeginAllToAll(std::span<float> array) override;
    void Wait(int64_t call) override;
    void WaitForAll() override { Wait(static_cast<int64_t>(calls_.size()) - 1); }

   private:
    int64_t Begin(std::function<void()> call);
    // Calls fn with the arrays of all ranks, by rank, as they were before the call.
    void Exchange(std::span<float> array,
                  const std::function<void(std::span<const std::vector<float>>)>& fn);

    ThreadShards* const all_;
    const int rank_;
    std::vector<std::function<void()>> calls_;
    size_t done_ = 0;
  };

 private:
  const ExchangeMoment moment_;
  std::vector<std::vector<float>> arrays_;
  std::barrier<> arrived_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_LINEAR_THREAD_SHARDS_H_
