#include "apps/dogs_vs_cats/progress_display.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "apps/print.h"

namespace ringtail {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr int kDefaultWidth = 80, kMaxBar = 40, kMinBar = 5;
constexpr double kMsPerSecond = 1e3;
constexpr char kClearLine[] = "\r\033[K";

int TerminalWidth(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultWidth;
  return size.ws_col;
}

std::string Numbers(const ProgressView& view) {
  const std::string comm = view.comm_ms > 0 ? fmt::format("comm {:.0f} ms ({:.0f} not hidden)  ",
                                                          view.comm_ms, view.exposed_comm_ms)
                                            : "";
  return fmt::format(
      "epoch {:.2f}/{:g}  step {}/{}  loss {:.3f}  {}accuracy {:.1f} %  {:.0f}/s  {}{}", view.epoch,
      view.total_epochs, view.step, view.total_steps, view.loss, view.mixed ? "mixed images: " : "",
      100 * view.accuracy, view.images_per_s, comm, ClockText(view.seconds_left));
}

}  // namespace

std::string ClockText(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600;
  const int64_t s = std::llround(std::max(seconds, 0.0));
  if (s < kMinute) return fmt::format("{}", s);
  if (s < kHour) return fmt::format("{}:{:02}", s / kMinute, s % kMinute);
  return fmt::format("{}:{:02}:{:02}", s / kHour, s % kHour / kMinute, s % kMinute);
}

std::string ProgressBarLine(const ProgressView& view, int width) {
  const std::string numbers = Numbers(view);
  const int bar = std::min(kMaxBar, width - static_cast<int>(numbers.size()) - 3);  // "[" "] "
  if (bar < kMinBar) return numbers.substr(0, std::max(width, 0));
  const int done = static_cast<int>(bar * view.step / std::max<int64_t>(view.total_steps, 1));
  std::string drawn(bar, ' ');
  std::fill_n(drawn.begin(), done, '=');
  if (done < bar) drawn[done] = '>';
  return fmt::format("[{}] {}", drawn, numbers);
}

std::string ProgressPlainLine(const ProgressView& view) { return Numbers(view) + " left"; }

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
    PrintTo(out_, "{}{}", kClearLine,
            ProgressBarLine(View(step, plan), TerminalWidth(fileno(out_)) - 1));
    bar_shown_ = true;
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
  ClearBar();
  PrintTo(out_, "{}\n", what);
  std::fflush(out_);
}

void ProgressDisplay::OnEvaluation(const Metrics& evaluation, bool best_so_far) {
  ClearBar();
  PrintTo(out_, "epoch {:.2f}  step {}  validation: loss {:.4f}  accuracy {:.2f} %{}\n",
          evaluation.epoch, evaluation.step, evaluation.loss, 100 * evaluation.accuracy,
          best_so_far ? "  (best so far)" : "");
  std::fflush(out_);
}

void ProgressDisplay::ClearBar() {
  if (bar_shown_) PrintTo(out_, "{}", kClearLine);
  bar_shown_ = false;
}

void ProgressDisplay::Finish() {
  if (bar_shown_) PrintTo(out_, "\n");
  bar_shown_ = false;
  std::fflush(out_);
}

}  // namespace ringtail
