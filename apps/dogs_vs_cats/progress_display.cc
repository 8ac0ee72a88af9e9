#include "apps/dogs_vs_cats/progress_display.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "apps/print.h"
#include "core/logging.h"
#include "core/units.h"
#include "layers/convolution/measuring_notice.h"

namespace ringtail {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kDefaultWidth = 80, kMaxBar = 40, kMinBar = 5;
constexpr char kClearLine[] = "\r\033[K";

int TerminalWidth(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

// What is left of the line where there is less and less room.
enum class Detail { kAll, kNoSteps, kNoSpeed, kTime };

std::string Numbers(const ProgressView& view, Detail detail) {
  std::string line = fmt::format("epoch {:.2f}/{:g}  ", view.epoch, view.total_epochs);
  if (detail == Detail::kAll) line += fmt::format("step {}/{}  ", view.step, view.total_steps);
  if (detail != Detail::kTime) {
    line += fmt::format("loss {:.3f}  {}accuracy {:.1f} %  ", view.loss,
                        view.mixed ? "mixed images: " : "", 100 * view.accuracy);
  }
  if (detail <= Detail::kNoSteps) line += fmt::format("{:.0f} img/s  ", view.images_per_s);
  if (detail == Detail::kAll && view.comm_ms > 0) {
    line += fmt::format("comm {:.0f} ms ({:.0f} not hidden)  ", view.comm_ms, view.exposed_comm_ms);
  }
  return line + ClockText(view.seconds_left) + " left";
}

std::string Bar(const ProgressView& view, int columns) {
  const int done = static_cast<int>(columns * view.step / std::max<int64_t>(view.total_steps, 1));
  std::string drawn(columns, ' ');
  std::fill_n(drawn.begin(), done, '=');
  if (done < columns) drawn[done] = '>';
  return "[" + drawn + "] ";
}

}  // namespace

std::string ClockText(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600;
  const int64_t s = std::llround(std::max(seconds, 0.0));
  if (s < kMinute) return fmt::format("{} s", s);
  if (s < kHour) return fmt::format("{}:{:02}", s / kMinute, s % kMinute);
  return fmt::format("{}:{:02}:{:02}", s / kHour, s % kHour / kMinute, s % kMinute);
}

std::string ProgressBarLine(const ProgressView& view, int width) {
  constexpr int kAroundBar = 3;  // "[" "] "
  for (const Detail detail : {Detail::kAll, Detail::kNoSteps, Detail::kNoSpeed, Detail::kTime}) {
    std::string numbers = Numbers(view, detail);
    const int room = width - static_cast<int>(numbers.size());
    if (room >= kMinBar + kAroundBar) {
      return Bar(view, std::min(kMaxBar, room - kAroundBar)) + numbers;
    }
    if (room >= 0 && detail > Detail::kNoSteps) return numbers;
  }
  return Numbers(view, Detail::kTime).substr(0, std::max(width, 0));
}

std::string ProgressPlainLine(const ProgressView& view) { return Numbers(view, Detail::kAll); }

ProgressDisplay::ProgressDisplay(FILE* out, int log_every_steps, bool mixed)
    : out_(out),
      terminal_(isatty(fileno(out)) != 0),
      log_every_steps_(log_every_steps),
      mixed_(mixed) {}

ProgressDisplay::~ProgressDisplay() { Finish(); }

// On a terminal, older steps fade from the means; in a file, each line covers the steps since the
// previous one.
void ProgressDisplay::Add(const Metrics& step, const TrainingPlan& plan) {
  const double keep = terminal_ ? 1 - 1 / kShownSteps : 1;
  const double seconds = step.step_ms / kMsPerSecond;
  // What servers have done since the line before may be more than a step, or nothing.
  const bool update = step.kind == Metrics::Kind::kUpdate;
  const double share = update ? static_cast<double>(step.batch) /
                                    static_cast<double>(plan.growth_run().images_per_batch)
                              : 1;
  seconds_ = seconds_ * keep + seconds;
  if (share == 0) return;
  trained_loss_ += share * step.loss;
  trained_steps_ += share;
  steps_ = steps_ * keep + share;
  loss_sum_ = loss_sum_ * keep + share * step.loss;
  accuracy_sum_ = accuracy_sum_ * keep + share * step.accuracy;
  images_ = images_ * keep + step.images_per_s * seconds;
  work_ = work_ * keep + share * plan.WorkOf(step.step - 1);
  if (step.ranks.empty()) return;
  hidden_ms_ = hidden_ms_ * keep + step.own.hidden_comm_ms;
  exposed_ms_ = exposed_ms_ * keep + step.own.exposed_comm_ms;
}

ProgressView ProgressDisplay::View(const Metrics& step, const TrainingPlan& plan) const {
  ProgressView view;
  view.epoch = step.epoch;
  view.step = step.step;
  view.total_steps = plan.total_steps();
  // Where the batch grows, the last step may end within an epoch.
  view.total_epochs = std::round(plan.EpochAt(plan.total_steps()) * 100) / 100;
  view.loss = loss_sum_ / steps_;
  view.accuracy = accuracy_sum_ / steps_;
  view.mixed = mixed_;
  view.images_per_s = images_ / seconds_;
  view.exposed_comm_ms = exposed_ms_ / steps_;
  view.comm_ms = (hidden_ms_ + exposed_ms_) / steps_;
  view.seconds_left = plan.WorkLeft(step.step) * seconds_ / work_;
  return view;
}

void ProgressDisplay::OnStep(const Metrics& step, const TrainingPlan& plan) {
  Add(step, plan);
  const bool last = step.step == plan.total_steps();
  if (terminal_) {
    if (steps_ == 0) return;
    if (!last && bar_shown_ && since_drawn_.Seconds() < kRedrawSeconds) return;
    since_drawn_.Restart();
    ShowLine(ProgressBarLine(View(step, plan), TerminalWidth(fileno(out_)) - 1));
  } else {
    const bool passed = step.step / log_every_steps_ > printed_step_ / log_every_steps_;
    if (steps_ == 0 || (!last && !passed)) return;
    printed_step_ = step.step;
    PrintTo(out_, "{}\n", ProgressPlainLine(View(step, plan)));
    steps_ = loss_sum_ = accuracy_sum_ = images_ = seconds_ = work_ = hidden_ms_ = exposed_ms_ = 0;
  }
  std::fflush(out_);
}

void ProgressDisplay::OnBatchGrowth(const std::string& what) {
  Clear();
  PrintTo(out_, "{}\n", what);
  std::fflush(out_);
}

void ProgressDisplay::OnEvaluation(const Metrics& evaluation, bool best_so_far) {
  Clear();
  const std::string training =
      trained_steps_ > 0 ? fmt::format("training loss {:.4f}  ", trained_loss_ / trained_steps_)
                         : "";
  trained_loss_ = trained_steps_ = 0;
  PrintTo(out_, "epoch {:.2f}  step {}  {}validation: loss {:.4f}  accuracy {:.2f} %{}\n",
          evaluation.epoch, evaluation.step, training, evaluation.loss, 100 * evaluation.accuracy,
          best_so_far ? "  (best so far)" : "");
  std::fflush(out_);
}

void ProgressDisplay::OnMeasured() {
  ++measured_;
  constexpr char kWhy[] = "once; kept in the cache";
  if (!terminal_) {
    if (measured_ == 1) PrintTo(out_, "measuring convolutions ({})\n", kWhy);
  } else if (!bar_shown_ || since_drawn_.Seconds() >= kRedrawSeconds) {
    since_drawn_.Restart();
    const std::string line = fmt::format("measuring convolutions: {} done, {}  ({})", measured_,
                                         ClockText(since_start_.Seconds()), kWhy);
    ShowLine(line.substr(0, TerminalWidth(fileno(out_)) - 1));
  }
  std::fflush(out_);
}

void ProgressDisplay::ShowLine(const std::string& line) {
  PrintTo(out_, "{}{}", kClearLine, line);
  bar_shown_ = true;
  SetRedrawnLine(true);
}

void ProgressDisplay::Clear() {
  if (bar_shown_) PrintTo(out_, "{}", kClearLine);
  bar_shown_ = false;
  SetRedrawnLine(false);
  std::fflush(out_);
}

void ProgressDisplay::Finish() {
  if (bar_shown_) PrintTo(out_, "\n");
  bar_shown_ = false;
  SetRedrawnLine(false);
  std::fflush(out_);
}

MeasuringShown::MeasuringShown(ProgressDisplay* progress) {
  if (progress != nullptr) SetMeasuringNotice([progress] { progress->OnMeasured(); });
}

MeasuringShown::~MeasuringShown() { SetMeasuringNotice({}); }

}  // namespace ringtail
