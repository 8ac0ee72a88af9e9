#include "apps/trainer/update/step_exchange.h"

#include "core/sum_of_squares.h"

namespace ringtail {
namespace {

constexpr int64_t kKib = 1024;

}  // namespace

StepExchange::StepExchange(TrainingWorld* world, ParameterArena* arena, const BatchShare& share,
                           const DistConfig& config)
    : world_(world),
      arena_(arena),
      weight_(static_cast<double>(share.batch) / static_cast<double>(share.global_batch)) {
  if (world->alone()) return;
  synchronizer_.emplace(world->gradient_thread(), arena, Buckets(config),
                        [this](Communicator* ranks, size_t bucket, std::span<float> gradients) {
                          return Reduce(ranks, bucket, gradients);
                        });
}

BucketOptions StepExchange::Buckets(const DistConfig& config) {
  return {.bytes = config.bucket_kib() * kKib, .end_bytes = config.end_bucket_kib() * kKib};
}

Status StepExchange::Reduce(Communicator* ranks, size_t bucket, std::span<float> gradients) {
  if (compression_ != nullptr) return compression_->Reduce(ranks, bucket, gradients);
  if (measures_noise_) own_squares_ += SumOfSquares(gradients);
  return GradientSynchronizer::AllReduceBucket(ranks, bucket, gradients);
}

// |sum over b samples|^2 / b = b |mean|^2.
double StepExchange::gradient_squares() const {
  return own_count_ > 0 ? own_squares_ / own_count_ : 0;
}

void StepExchange::OnLoss(const LossResult& loss) {
  world_->progress()->Enter(Phase::kBackward);
  if (world_->alone()) return;
  sums_ = {loss.loss_sum, static_cast<double>(loss.correct), static_cast<double>(loss.count)};
  own_count_ = sums_[2];
  own_squares_ = 0;
  sent_before_ = world_->sent_bytes();
  world_->gradient_thread()->Submit(
      [this](Communicator* ranks) { return ranks->AllReduce(std::span<double>(sums_)); });
  if (arena_->buffers().empty()) return;
  world_->gradient_thread()->Submit([this](Communicator* ranks) {
    const std::span<float> statistics = arena_->buffer_values();
    for (float& value : statistics) value = static_cast<float>(weight_ * value);
    return ranks->AllReduce(statistics);
  });
}

void StepExchange::OnReady(const Parameter& parameter) {
  world_->progress()->Tick();
  if (!world_->alone()) synchronizer_->OnReady(parameter);
}

Status StepExchange::Finish(LossResult* loss) {
  if (world_->alone()) {
    return compression_ != nullptr ? compression_->ReduceAlone() : OkStatus();
  }
  RT_RETURN_IF_ERROR(world_->WaitForGradients());
  times_ = world_->gradient_thread()->TakeTimes();
  sent_bytes_ = world_->sent_bytes() - sent_before_;
  *loss = {.loss_sum = sums_[0],
           .correct = static_cast<int64_t>(sums_[1]),
           .count = static_cast<int64_t>(sums_[2])};
  return OkStatus();
}

}  // namespace ringtail
