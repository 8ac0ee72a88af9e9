#include "tests/layers/linear/thread_shards.h"

#include <algorithm>
#include <utility>

namespace ringtail {

int64_t ThreadShards::Rank::Begin(std::function<void()> call) {
  calls_.push_back(std::move(call));
  const auto number = static_cast<int64_t>(calls_.size()) - 1;
  if (all_->moment_ == ExchangeMoment::kAtBegin) Wait(number);
  return number;
}

void ThreadShards::Rank::Wait(int64_t call) {
  for (; done_ <= static_cast<size_t>(call); ++done_) calls_[done_]();
}

void ThreadShards::Rank::Exchange(
    std::span<float> array, const std::function<void(std::span<const std::vector<float>>)>& fn) {
  all_->arrays_[rank_].assign(array.begin(), array.end());
  all_->arrived_.arrive_and_wait();
  fn(all_->arrays_);
  all_->arrived_.arrive_and_wait();
}

int64_t ThreadShards::Rank::BeginAllGather(std::span<float> array) {
  return Begin([=, this] {
    Exchange(array, [&](std::span<const std::vector<float>> all) {
      const size_t part = array.size() / all.size();
      for (size_t rank = 0; rank < all.size(); ++rank) {
        std::copy_n(all[rank].begin() + rank * part, part, array.begin() + rank * part);
      }
    });
  });
}

int64_t ThreadShards::Rank::BeginReduceScatter(std::span<float> array) {
  return Begin([=, this] {
    Exchange(array, [&](std::span<const std::vector<float>> all) {
      const size_t part = array.size() / all.size();
      for (size_t i = 0; i < array.size(); ++i) {
        float sum = 0;
        for (const std::vector<float>& of_rank : all) sum += of_rank[i];
        array[i] = i / part == static_cast<size_t>(rank_) ? sum : -1e9F;  // "holds anything"
      }
    });
  });
}

int64_t ThreadShards::Rank::BeginAllToAll(std::span<float> array) {
  return Begin([=, this] {
    Exchange(array, [&](std::span<const std::vector<float>> all) {
      const size_t block = array.size() / (2 * all.size());
      for (size_t rank = 0; rank < all.size(); ++rank) {
        std::copy_n(all[rank].begin() + rank_ * block, block,
                    array.begin() + (all.size() + rank) * block);
      }
    });
  });
}

}  // namespace ringtail
