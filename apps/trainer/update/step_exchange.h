// StepExchange: what the ranks tell each other while a step is computed.
//
//   trainer thread    forward |OnLoss|  backward  OnReady OnReady .. |WaitForLoss|Finish| optimizer
//   rt-comm                      [sums][statistics][ bucket 0 ][ bucket 1 ][ bucket 2 ]
//                                                                bucket 0 |OnSummed|
//
//   sums          loss, right answers and samples: a batch that is smaller on one rank counts less
//   statistics    batch norm's running statistics: the mean over the ranks by batch size, so that all
//                 ranks have the same bits whenever a checkpoint is written; in every step, or in
//                 some (dist.compression.statistics_every_steps): the caller then drops what the
//                 batches of the others have changed
//   buckets       gradients: sums over all samples of the replicas, which hold the same weights (of the
//                 world, but for a pipeline's stages); what this rank's own were like is
//                 kept as one number, for the noise scale (optim/noise_scale.h)
//
// What waits for the last buckets may do something with the first ones meanwhile (OnSummed).
// In a world of one nothing is exchanged. Thread-safety: the trainer thread. A step that is left
// under way, as by an error in its backward or of the other world's thread, is waited for at the
// end: all ranks have to finish it, or the world must have been aborted before.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_STEP_EXCHANGE_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_STEP_EXCHANGE_H_

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "apps/trainer/division/batch_division.h"
#include "apps/trainer/training_world.h"
#include "apps/trainer/update/gradient_compression.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/parameter.h"
#include "dist/gradients/dense_reducer.h"
#include "dist/gradients/gradient_synchronizer.h"

namespace ringtail {

class StepExchange : public GradientListener {
 public:
  // All must outlive it. `replicas`: those that add up gradients; the world, or a part of it.
  StepExchange(TrainingWorld* world, TrainingWorld* replicas, ParameterArena* arena,
               const BatchShare& share, const DistConfig& config);
  ~StepExchange() override;
  StepExchange(const StepExchange&) = delete;
  StepExchange& operator=(const StepExchange&) = delete;
  // Of the gradients; made once, on every rank alike.
  std::span<const GradientBucket> buckets() const { return buckets_; }

  // From now on; null: gradients travel uncompressed. It must outlive the steps.
  void Compress(GradientCompression* compression);

  // `step`: steps done before. `measures_noise`: whether gradient_squares is wanted of this step.
  void BeginStep(int64_t step, bool measures_noise);
  void OnLoss(const LossResult& loss) override;
  void OnReady(const Parameter& parameter) override;

  // Until the sums have arrived: `loss` is the world's then.
  Status WaitForLoss(LossResult* loss);
  // Is given parameters, as indices in the arena, whose gradients are the world's already.
  using OnSummed = std::function<void(std::span<const size_t> parameters)>;
  // Until everything has arrived: gradients and statistics are the world's then. An error leaves
  // them undefined. `on_summed`, which may be null, is called as long as others have to come.
  Status Finish(const OnSummed& on_summed);
  ExchangeTimes times() const { return times_; }      // of the last step
  int64_t sent_bytes() const { return sent_bytes_; }  // in the last step
  // Whether the running statistics are to take in the batch of this step, and for how many steps;
  // alone, always and for this one.
  bool takes_statistics() const { return takes_statistics_; }
  int64_t statistics_steps() const;
  bool measured_noise() const { return measures_noise_; }
  // b |g|^2, where g is this rank's own mean gradient over its b samples of the last step; 0 if it
  // was not measured.
  double gradient_squares() const;

 private:
  void ReduceWith(BucketReducer* reducer);
  Status HandOut(const OnSummed& on_summed);

  TrainingWorld* const world_;
  TrainingWorld* const replicas_;
  ParameterArena* const arena_;
  const double weight_;  // of this rank's statistics
  const CompressionConfig compression_;
  const std::vector<GradientBucket> buckets_;
  DenseReducer dense_;
  BucketReducer* reducer_ = &dense_;
  std::optional<GradientSynchronizer> synchronizer_;  // none without other replicas
  int64_t SentBytes() const;
  std::array<double, 3> sums_{};  // loss, correct, count
  int64_t sums_job_ = 0;          // of the communication thread
  bool measures_noise_ = false, takes_statistics_ = true;
  double own_count_ = 0;
  ExchangeTimes times_;
  int64_t sent_bytes_ = 0, sent_before_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_STEP_EXCHANGE_H_
