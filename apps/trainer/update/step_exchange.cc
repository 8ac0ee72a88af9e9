#include "apps/trainer/update/step_exchange.h"

#include <numeric>

#include "dist/compression/scheme_choice.h"

namespace ringtail {
StepExchange::StepExchange(TrainingWorld* world, TrainingWorld* replicas, ParameterArena* arena,
                           const BatchShare& share, const DistConfig& config)
    : world_(world),
      replicas_(replicas),
      arena_(arena),
      weight_(static_cast<double>(share.batch) / static_cast<double>(share.global_batch)),
      compression_(config.compression()),
      buckets_(MakeGradientBuckets(arena->replicated(), BucketsOf(config))) {
  ReduceWith(&dense_);
}

// The jobs use this and the reducer. Not through the worlds: that one is over which this rank has
// ended is not the loss of another rank.
StepExchange::~StepExchange() {
  for (TrainingWorld* const world : {world_, replicas_}) {
    if (!world->alone()) (void)world->gradient_thread()->Wait();
  }
}

void StepExchange::Compress(GradientCompression* compression) {
  ReduceWith(compression != nullptr ? compression->reducer() : &dense_);
}

void StepExchange::ReduceWith(BucketReducer* reducer) {
  reducer_ = reducer;
  if (replicas_->alone()) return;
  synchronizer_.emplace(replicas_->gradient_thread(), arena_, buckets_, reducer);
}

// |sum over b samples|^2 / b = b |mean|^2.
double StepExchange::gradient_squares() const {
  return own_count_ > 0 ? dense_.own_squares() / own_count_ : 0;
}

void StepExchange::BeginStep(int64_t step, bool measures_noise) {
  measures_noise_ = measures_noise;
  sent_before_ = SentBytes();
  takes_statistics_ = replicas_->alone() || TakesStatistics(compression_, step);
}

int64_t StepExchange::statistics_steps() const {
  return replicas_->alone() ? 1 : compression_.statistics_every_steps();
}

void StepExchange::OnLoss(const LossResult& loss) {
  world_->progress()->Enter(Phase::kBackward);
  if (world_->alone()) return;
  sums_ = {loss.loss_sum, static_cast<double>(loss.correct), static_cast<double>(loss.count)};
  own_count_ = sums_[2];
  dense_.BeginStep(measures_noise_);
  sums_job_ = world_->gradient_thread()->Submit(
      [this](Communicator* ranks) { return ranks->AllReduce(std::span<double>(sums_)); });
  if (replicas_->alone() || arena_->buffers().empty() || !takes_statistics_) return;
  replicas_->gradient_thread()->Submit([this](Communicator* ranks) {
    const std::span<float> statistics = arena_->buffer_values();
    for (float& value : statistics) value = static_cast<float>(weight_ * value);
    return ranks->AllReduce(statistics);
  });
}

void StepExchange::OnReady(const Parameter& parameter) {
  world_->progress()->Tick();
  if (!replicas_->alone() && !parameter.spec.is_sharded()) synchronizer_->OnReady(parameter);
}

Status StepExchange::WaitForLoss(LossResult* loss) {
  if (world_->alone()) return OkStatus();
  RT_RETURN_IF_ERROR(world_->WaitForGradients(sums_job_));
  *loss = {.loss_sum = sums_[0],
           .correct = static_cast<int64_t>(sums_[1]),
           .count = static_cast<int64_t>(sums_[2])};
  return OkStatus();
}

Status StepExchange::Finish(const OnSummed& on_summed) {
  if (world_->alone()) {
    if (reducer_ == &dense_) return OkStatus();
    return world_->Run(
        [&](Communicator* ranks) { return ReduceBuckets(ranks, *arena_, buckets_, reducer_); });
  }
  if (on_summed) RT_RETURN_IF_ERROR(HandOut(on_summed));
  RT_RETURN_IF_ERROR(world_->WaitForGradients());
  times_ = world_->gradient_thread()->TakeTimes();
  if (replicas_ != world_ && !replicas_->alone()) {
    RT_RETURN_IF_ERROR(replicas_->WaitForGradients());
    const ExchangeTimes gradients = replicas_->gradient_thread()->TakeTimes();
    times_.busy_seconds += gradients.busy_seconds;
    times_.exposed_seconds += gradients.exposed_seconds;
  }
  sent_bytes_ = SentBytes() - sent_before_;
  return OkStatus();
}

int64_t StepExchange::SentBytes() const {
  return world_->sent_bytes() + (replicas_ != world_ ? replicas_->sent_bytes() : 0);
}

Status StepExchange::HandOut(const OnSummed& on_summed) {
  size_t next = 0;
  for (size_t bucket = 0; bucket + 1 < buckets_.size(); ++bucket) {
    RT_RETURN_IF_ERROR(replicas_->WaitForGradients(synchronizer_->job(bucket)));
    if (replicas_->gradient_thread()->idle()) return OkStatus();
    std::vector<size_t> parameters(buckets_[bucket].parameters);
    std::iota(parameters.begin(), parameters.end(), next);
    next += parameters.size();
    on_summed(parameters);
  }
  return OkStatus();
}

}  // namespace ringtail
