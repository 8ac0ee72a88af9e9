// Shows the progress of a training run on standard output.
//
// On a terminal: one line that is redrawn, and a line for each evaluation and each growth of the
// batch:
//   [=====>    ] epoch 3.42/30  step 1069/9360  loss 0.341  accuracy 86.7 %  1180 img/s  12:34 left
// With several ranks also the communication time of a step: "comm 31 ms (4 not hidden)". A narrow
// terminal gets less of it, but always the time. While convolutions are measured, before the first
// step and where the image size changes, a line says so.
// In a file or pipe: a plain line every `log_every_steps` steps. Loss, accuracy and rate are means
// since the previous line (on a terminal: over about the last kShownSteps steps). Where images are
// mixed (data.augment.mixup, cutmix), the accuracy of the class with the larger share, which cannot
// reach what validation shows: it is called so. The remaining
// time considers the image sizes and batches of later phases, but not the evaluations.
// State: sums since the previous line. Thread-safety: one thread. Cost: a few additions per step.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_PROGRESS_DISPLAY_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_PROGRESS_DISPLAY_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "apps/trainer/training_observer.h"
#include "core/stopwatch.h"

namespace ringtail {

struct ProgressView {
  double epoch = 0, total_epochs = 0;
  int64_t step = 0, total_steps = 0;
  double loss = 0, accuracy = 0, images_per_s = 0;
  bool mixed = false;  // loss and accuracy are those of mixtures
  double seconds_left = 0;
  double comm_ms = 0, exposed_comm_ms = 0;  // 0: one rank
};

// The line without control characters, at most `width` columns wide; the bar takes the remaining
// columns.
std::string ProgressBarLine(const ProgressView& view, int width);
std::string ProgressPlainLine(const ProgressView& view);
std::string ClockText(double seconds);  // "59 s", "12:34", "1:02:03" (h:mm:ss)

class ProgressDisplay : public TrainingObserver {
 public:
  static constexpr double kShownSteps = 50;

  // mixed: the training images are mixtures.
  ProgressDisplay(FILE* out, int log_every_steps, bool mixed = false);
  ~ProgressDisplay() override;
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void OnStep(const Metrics& step, const TrainingPlan& plan) override;
  void OnBatchGrowth(const std::string& what) override;
  void OnEvaluation(const Metrics& evaluation, bool best_so_far) override;
  // A direction of a convolution was measured.
  void OnMeasured();
  void Clear();   // removes the line on the terminal
  void Finish();  // keeps it
  // Since this was created.
  double seconds() const { return since_start_.Seconds(); }

 private:
  void Add(const Metrics& step, const TrainingPlan& plan);
  void ShowLine(const std::string& line);
  ProgressView View(const Metrics& step, const TrainingPlan& plan) const;

  FILE* const out_;
  const bool terminal_;
  const int log_every_steps_;
  const bool mixed_;
  int64_t printed_step_ = 0;  // in a file: of the last line
  bool bar_shown_ = false;
  Stopwatch since_drawn_, since_start_;
  int64_t measured_ = 0;
  double steps_ = 0, loss_sum_ = 0, accuracy_sum_ = 0, images_ = 0, seconds_ = 0;
  double work_ = 0;  // of the same steps, in the units of the plan
  double hidden_ms_ = 0, exposed_ms_ = 0;
  double trained_loss_ = 0, trained_steps_ = 0;  // since the last evaluation
};

// As long as it lives, measurements of convolutions are shown by `progress`, unless that is null.
class MeasuringShown {
 public:
  explicit MeasuringShown(ProgressDisplay* progress);
  ~MeasuringShown();
  MeasuringShown(const MeasuringShown&) = delete;
  MeasuringShown& operator=(const MeasuringShown&) = delete;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_PROGRESS_DISPLAY_H_
