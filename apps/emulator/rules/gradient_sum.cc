#include "apps/emulator/rules/gradient_sum.h"

#include <algorithm>

#include "core/add_to.h"

namespace ringtail {

void GradientSum::Begin(size_t workers, bool takes_statistics) {
  workers_ = workers;
  takes_statistics_ = takes_statistics || workers == 1;
  done_ = 0;
  const std::span<const float> statistics = arena_->buffer_values();
  statistics_before_.assign(statistics.begin(), statistics.end());
  statistics_.assign(statistics.size(), 0);
  const size_t bytes = arena_->grads().size_bytes();
  if (workers > 1 && sum_.size_bytes() != bytes) sum_ = AlignedBuffer(bytes);
}

void GradientSum::BeginWorker(ParameterArena* own) {
  own_ = own;
  Undo();
}

void GradientSum::OnReady(const Parameter& parameter) {
  if (own_ != nullptr) {
    std::ranges::copy(parameter.grad(), own_->grads().begin() + parameter.offset);
    return;
  }
  if (workers_ == 1) return;
  const std::span<float> sum = sum_.floats().subspan(static_cast<size_t>(parameter.offset),
                                                     static_cast<size_t>(parameter.elements));
  if (done_ > 0) AddTo(sum, parameter.grad());
  if (done_ + 1 < workers_) std::ranges::copy(parameter.grad(), sum.begin());
}

void GradientSum::EndWorker(double weight) {
  ++done_;
  if (!takes_statistics_) Undo();
  if (workers_ == 1 || !takes_statistics_) return;
  const std::span<float> own = arena_->buffer_values();
  for (size_t i = 0; i < own.size(); ++i) statistics_[i] += static_cast<float>(weight * own[i]);
  if (done_ == workers_) std::ranges::copy(statistics_, own.begin());
}

void GradientSum::Undo() { std::ranges::copy(statistics_before_, arena_->buffer_values().begin()); }

}  // namespace ringtail
