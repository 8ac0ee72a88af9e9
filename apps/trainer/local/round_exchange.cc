#include "apps/trainer/local/round_exchange.h"

#include <type_traits>

namespace ringtail {
RoundExchange::RoundExchange(TrainingWorld* world, LocalRound* round, const DistConfig& config)
    : world_(world),
      round_(round),
      buckets_(MakeGradientBuckets(round->differences()->parameters(), BucketsOf(config))),
      ranks_(world->size()) {}

// The jobs use this, the differences and the codecs. Not through the world: that a world that this
// rank has ended is over is not the loss of another rank.
RoundExchange::~RoundExchange() {
  if (under_way_ && !world_->alone()) (void)world_->gradient_thread()->Wait();
}

void RoundExchange::Compress(GradientCompression* compression) {
  reducer_ = compression != nullptr ? compression->reducer() : &dense_;
}

void RoundExchange::Start(const RankRound& own) {
  static_assert(std::is_trivially_copyable_v<RankRound>);  // all ranks run the same build
  under_way_ = true;
  ranks_[world_->rank()] = own;
  dense_.BeginStep(/*measures_squares=*/false);
  if (world_->alone()) return;
  sent_before_ = world_->sent_bytes();
  CommunicationThread* const thread = world_->gradient_thread();
  thread->Submit([this](Communicator* ranks) {
    RT_RETURN_IF_ERROR(ranks->AllGather(std::as_writable_bytes(std::span(ranks_))));
    since_all_are_here_.Restart();
    return OkStatus();
  });
  if (!round_->statistics().empty()) {
    thread->Submit([this](Communicator* ranks) { return ranks->AllReduce(round_->statistics()); });
  }
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    thread->Submit([this, bucket](Communicator* ranks) {
      Status status = reducer_->Reduce(ranks, bucket, Differences(bucket));
      exchange_seconds_ = since_all_are_here_.Seconds();
      return status;
    });
  }
}

// Nothing is sent, but a codec may have kept something of a run of several ranks.
Status RoundExchange::ReduceAlone(Communicator* ranks) {
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    RT_RETURN_IF_ERROR(reducer_->Reduce(ranks, bucket, Differences(bucket)));
  }
  return OkStatus();
}

std::span<float> RoundExchange::Differences(size_t bucket) {
  const ElementRange& range = buckets_[bucket].range;
  return round_->differences()->grads().subspan(range.offset, range.count);
}

StatusOr<std::vector<RankRound>> RoundExchange::Finish() {
  under_way_ = false;
  if (world_->alone()) {
    RT_RETURN_IF_ERROR(world_->Run([this](Communicator* ranks) { return ReduceAlone(ranks); }));
    return ranks_;
  }
  RT_RETURN_IF_ERROR(world_->WaitForGradients());
  times_ = world_->gradient_thread()->TakeTimes();
  sent_bytes_ = world_->sent_bytes() - sent_before_;
  return ranks_;
}

}  // namespace ringtail
