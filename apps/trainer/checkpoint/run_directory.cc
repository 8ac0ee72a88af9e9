#include "apps/trainer/checkpoint/run_directory.h"

#include <fmt/core.h>

#include "apps/report/run_history.h"
#include "apps/report/tensorboard_events.h"
#include "apps/trainer/training_data.h"
#include "core/config/text_config.h"
#include "core/logging.h"
#include "core/storage/disk_room.h"
#include "core/storage/file.h"
#include "dist/config_check.h"

namespace ringtail {
namespace {

std::string MetricsPath(const std::string& folder) { return folder + "/metrics.jsonl"; }

}  // namespace

StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(const std::string& path) {
  auto acquired = RunLock::Acquire(path);
  if (acquired.status().code() == StatusCode::kInvalidArgument) {
    return InvalidArgument(acquired.status().message() + "; or give another --output");
  }
  RT_ASSIGN_OR_RETURN(RunLock lock, std::move(acquired));
  RT_ASSIGN_OR_RETURN(CheckpointDirectory checkpoints, CheckpointDirectory::Open(lock));
  return std::unique_ptr<RunDirectory>(new RunDirectory(std::move(lock), std::move(checkpoints)));
}

bool RunDirectory::HasCheckpoints() const {
  const auto steps = checkpoints_.Steps();
  return !steps.ok() || !steps->empty();  // if in doubt, there is something to protect
}

Status RunDirectory::Begin(const RunConfig& config, const std::vector<BadImage>& bad,
                           int64_t step) {
  config_text_ = PrintTextConfig(config);
  bad_text_ = bad.empty() ? "" : BadImagesCsv(bad);
  has_rounds_ = UsesLocalRounds(config.dist());
  RT_RETURN_IF_ERROR(WriteDescription());
  return OpenMetrics(step);
}

Status RunDirectory::OpenMetrics(int64_t step) {
  RT_ASSIGN_OR_RETURN(auto metrics, MetricsWriter::Open(MetricsPath(path()), step));
  metrics_ = std::move(metrics);
  OpenEvents();
  return OkStatus();
}

void RunDirectory::OpenEvents() {
  events_.reset();
  const auto history = ReadRunHistory(MetricsPath(path()));
  auto log = history.ok() ? EventLog::Open(path() + "/" + kTensorboardFolder, *history)
                          : StatusOr<EventLog>(history.status());
  if (log.ok()) {
    events_ = *std::move(log);
  } else {
    LogWarning(fmt::format("no curves for TensorBoard: {}", log.status().message()));
  }
}

Status RunDirectory::WriteDescription() const {
  RT_ASSIGN_OR_RETURN(const std::string folder, Folder());
  RT_RETURN_IF_ERROR(WriteFileAtomic(folder + "/" + kConfigName, config_text_));
  if (bad_text_.empty()) return OkStatus();
  return WriteFileAtomic(BadImagesPath(), bad_text_);
}

// If the folder was deleted and made again: writes what describes the run, and metrics from now on.
Status RunDirectory::StartAgainIfRemade() {
  if (times_remade_ == lock_.times_remade()) return OkStatus();
  times_remade_ = lock_.times_remade();
  RT_RETURN_IF_ERROR(WriteDescription());
  return OpenMetrics(/*step=*/-1);
}

void RunDirectory::CheckRoom(std::span<const int64_t> files) const {
  const Status status = CheckDiskRoom(path() + "/" + kCheckpointFolder, files);
  if (status.ok()) return;
  LogError(
      fmt::format("no checkpoint will be written as things are: {}; make room there, or stop "
                  "and give another --output; training continues and tries again",
                  status.message()));
}

void RunDirectory::CheckpointFailed(int64_t step, int64_t newest, const Status& why) {
  ++failed_in_a_row_;
  const std::string kept =
      newest < 0 ? "there is none yet" : fmt::format("that of step {} stays", newest);
  if (failed_in_a_row_ < kLoudAfter) {
    LogWarning(fmt::format("no checkpoint of step {}: {}; {}", step, why.message(), kept));
    return;
  }
  const std::string lost =
      newest < 0 ? "the whole run" : fmt::format("what was learned since step {}", newest);
  LogError(
      fmt::format("no checkpoint of step {}, {} failures in a row: {}; {}; if the run "
                  "ended now, {} would be lost",
                  step, failed_in_a_row_, why.message(), kept, lost));
}

void RunDirectory::Record(const Metrics& metrics) {
  Metrics timed = metrics;
  timed.time = UnixSeconds();
  Status status = StartAgainIfRemade();
  if (status.ok()) {
    RecordEvent(timed);  // first, so that events are never behind (WriteEventFiles)
    status = metrics_->Write(timed);
  }
  if (status.ok() || warned_) return;
  warned_ = true;
  LogWarning(fmt::format("{}; training continues without these lines", status.message()));
}

void RunDirectory::RecordEvent(const Metrics& metrics) {
  if (!events_) return;
  const HistoryPoint point{.step = metrics.step,
                           .epoch = metrics.epoch,
                           .loss = metrics.loss,
                           .accuracy = metrics.accuracy,
                           .learning_rate = metrics.learning_rate,
                           .time = metrics.time};
  Status status;
  switch (metrics.kind) {
    case Metrics::Kind::kEvaluation:
      status = events_->AddEvaluation(point);
      break;
    case Metrics::Kind::kStep:
    case Metrics::Kind::kUpdate:
      if (!has_rounds_) status = events_->AddTraining(point);
      break;
    case Metrics::Kind::kRound:
      status = events_->AddTraining(point);
      break;
    case Metrics::Kind::kPrediction:
      break;
  }
  if (status.ok()) return;
  events_.reset();
  LogWarning(
      fmt::format("TensorBoard's curves end here, until the run has ended: {}", status.message()));
}

void RunDirectory::RecordLate(const std::vector<Metrics>& step) {
  if (step.empty()) return;
  auto metrics = MetricsWriter::Open(MetricsPath(path()), step.front().step - 1);
  if (!metrics.ok()) return LogWarning(metrics.status().message());
  metrics_ = *std::move(metrics);
  for (const Metrics& line : step) Record(line);
}

}  // namespace ringtail
