// RoundExchange: what ranks tell each other after a round of local steps, on the communication
// thread, in this order:
//
//   rt-comm   [ RankRound of all ranks ][ running statistics ][ differences, bucket 0 ][ 1 ] ..
//
// The roll call, the sums of loss and images, and the wish to stop, which the synchronous path
// exchanges in every step, travel with the round. Between Start and Finish the trainer thread may
// compute the next round; what LocalRound offers belongs to the communication thread meanwhile.
// Thread-safety: the trainer thread. Errors: those of the world. An exchange that is left under way,
// as by an error of this rank's own, is waited for at the end: all ranks have to finish it, or the
// world must have been aborted before.
#ifndef RINGTAIL_APPS_TRAINER_LOCAL_ROUND_EXCHANGE_H_
#define RINGTAIL_APPS_TRAINER_LOCAL_ROUND_EXCHANGE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "apps/trainer/local/local_round.h"
#include "apps/trainer/training_world.h"
#include "apps/trainer/update/gradient_compression.h"
#include "core/status.h"
#include "core/stopwatch.h"
#include "dist/gradients/dense_reducer.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

// What one rank says of its round.
struct RankRound {
  int64_t stop_signal = 0;                   // sent to this process; 0: none
  double weight = 0;                         // in the mean (c_i of local_round.h)
  double squares = 0;                        // |D_i|^2
  double loss = 0, correct = 0, images = 0;  // sums over its samples
  int64_t left_out = 0;                      // steps with a loss or gradient that was not finite
  double step_seconds = 0;                   // mean of its steps, without waiting for other ranks
  double exchange_seconds = 0;               // of the exchange before this one; 0: there was none
};

class RoundExchange {
 public:
  // `world` and `round` must outlive it.
  RoundExchange(TrainingWorld* world, LocalRound* round, const DistConfig& config);
  ~RoundExchange();
  RoundExchange(const RoundExchange&) = delete;
  RoundExchange& operator=(const RoundExchange&) = delete;

  // Of the differences; made once, on every rank alike.
  std::span<const GradientBucket> buckets() const { return buckets_; }
  // From now on; null: differences travel uncompressed. It must outlive this.
  void Compress(GradientCompression* compression);

  // After LocalRound::Take. `own` of all ranks is what Finish returns.
  void Start(const RankRound& own);
  bool under_way() const { return under_way_; }
  // Waits. By rank; the sums are in LocalRound then. Alone that is what was offered, and what codecs
  // of several ranks had not sent before.
  StatusOr<std::vector<RankRound>> Finish();

  ExchangeTimes times() const { return times_; }  // of the last exchange
  // From when all ranks had come until the last sum was there.
  double exchange_seconds() const { return exchange_seconds_; }
  int64_t sent_bytes() const { return sent_bytes_; }  // in the last exchange

 private:
  Status ReduceAlone(Communicator* ranks);
  std::span<float> Differences(size_t bucket);

  TrainingWorld* const world_;
  LocalRound* const round_;
  const std::vector<GradientBucket> buckets_;
  DenseReducer dense_;
  BucketReducer* reducer_ = &dense_;
  std::vector<RankRound> ranks_;
  bool under_way_ = false;
  Stopwatch since_all_are_here_;  // the communication thread's, between Start and Finish
  double exchange_seconds_ = 0;   // likewise
  ExchangeTimes times_;
  int64_t sent_bytes_ = 0, sent_before_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_LOCAL_ROUND_EXCHANGE_H_
