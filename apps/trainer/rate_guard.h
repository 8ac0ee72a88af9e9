// RateGuard: says when a learning rate is so high that a run loses what it has learnt, and what to
// set.
//
//   validation |      .-.
//    accuracy  |    .'   '-.         falls from evaluation to evaluation, further than chance
//              |   /        '-.      explains, while the rate is above half of its highest value
//   rate       |   ________________  and the training loss hardly falls either
//              |  /                '-.
//
// Where the training loss falls and the accuracy, too, the network learns its images by heart: that
// is no matter of the rate. One warning in a run; a run that is resumed begins with no evaluations.
// Thread-safety: none. Cost: a few operations per step and evaluation.
#ifndef RINGTAIL_APPS_TRAINER_RATE_GUARD_H_
#define RINGTAIL_APPS_TRAINER_RATE_GUARD_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ringtail {

// An evaluation, and the steps since the one before.
struct RateEvidence {
  double accuracy = 0;       // of validation, a fraction
  double training_loss = 0;  // mean of the steps
  double rate = 0;           // of the last step
};

// Whether the last three evaluations show it. `validation_images`: of each, > 0; `highest_rate`: so
// far.
bool RateIsTooHigh(std::span<const RateEvidence> evaluations, int64_t validation_images,
                   double highest_rate);

class RateGuard {
 public:
  // After each step that counts: the mean loss of its images, and its rate.
  void AddStep(double loss, double rate);
  // After each evaluation, over so many images. A sentence that says what to set, once; else empty.
  // `configured`: optim.learning_rate, before batch scaling.
  std::string AddEvaluation(double accuracy, int64_t images, double configured);

  // Of the steps since the last evaluation; NaN without any.
  double MeanLoss() const { return loss_sum_ / static_cast<double>(steps_); }

 private:
  std::vector<RateEvidence> evaluations_;
  double loss_sum_ = 0, rate_ = 0, highest_rate_ = 0;
  int64_t steps_ = 0;  // since the last evaluation
  bool warned_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_RATE_GUARD_H_
