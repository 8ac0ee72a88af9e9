#include "dist/parameter_server/group_sum.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/kernels/add.h"

namespace ringtail {
namespace {

// sum += factor gradient
void AddMultiple(float factor, std::span<const float> gradient, std::span<float> sum) {
  const float* const g = gradient.data();
  float* const s = sum.data();
#pragma omp simd
  for (size_t i = 0; i < sum.size(); ++i) s[i] += factor * g[i];
}

}  // namespace

GroupSum::GroupSum(const Grouping& grouping, std::span<float> sum)
    : grouping_(grouping), sum_(sum) {}

void GroupSum::Add(int worker, std::span<const float> gradient, double weight, int64_t images) {
  RT_CHECK(gradient.size() == sum_.size() && images > 0, "a gradient of the shard, of images");
  places_.push_back(worker);
  ++pushes_;
  images_ += images;
  if (grouping_.by == Grouping::By::kAllWorkers) {
    kept_.push_back({worker, weight, {gradient.begin(), gradient.end()}});
  } else {
    AddToSum(gradient, weight);
  }
}

void GroupSum::Remove(int worker) { std::erase(places_, worker); }

bool GroupSum::Full(size_t workers) const {
  size_t filled = places_.size();
  if (grouping_.by == Grouping::By::kAllWorkers) {
    filled = std::set<int>(places_.begin(), places_.end()).size();
  }
  return filled >= static_cast<size_t>(grouping_.PushesPerUpdate(static_cast<int>(workers)));
}

void GroupSum::Close() {
  std::ranges::stable_sort(kept_, {}, &Kept::worker);
  for (const Kept& kept : kept_) AddToSum(kept.gradient, kept.weight);
  kept_.clear();
  places_.clear();
  pushes_ = 0;
  images_ = 0;
  empty_ = true;
}

void GroupSum::AddToSum(std::span<const float> gradient, double weight) {
  const bool first = std::exchange(empty_, false);
  if (weight == 1) {
    if (first) {
      std::ranges::copy(gradient, sum_.begin());
    } else {
      RT_KERNEL(AddFloats, gradient.data(), static_cast<int64_t>(sum_.size()), sum_.data());
    }
    return;
  }
  if (first) std::ranges::fill(sum_, 0.0F);
  AddMultiple(static_cast<float>(weight), gradient, sum_);
}

}  // namespace ringtail
