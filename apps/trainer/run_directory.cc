#include "apps/trainer/run_directory.h"

#include <fmt/core.h>

#include "apps/trainer/training_data.h"
#include "core/file.h"
#include "core/logging.h"
#include "core/text_config.h"

namespace ringtail {

StatusOr<std::unique_ptr<RunDirectory>> RunDirectory::Open(const std::string& path) {
  RT_ASSIGN_OR_RETURN(RunLock lock, RunLock::Acquire(path));
  RT_ASSIGN_OR_RETURN(CheckpointDirectory checkpoints, CheckpointDirectory::Open(lock));
  return std::unique_ptr<RunDirectory>(new RunDirectory(std::move(lock), std::move(checkpoints)));
}

bool RunDirectory::HasCheckpoints() const {
  const auto steps = checkpoints_.Steps();
  return !steps.ok() || !steps->empty();  // if in doubt, there is something to protect
}

Status RunDirectory::Begin(const RunConfig& config, const std::vector<BadPicture>& bad,
                           int64_t step) {
  RT_RETURN_IF_ERROR(WriteFileAtomic(ConfigPath(), PrintTextConfig(config)));
  if (!bad.empty()) {
    RT_RETURN_IF_ERROR(WriteFileAtomic(BadPicturesPath(), BadPicturesCsv(bad)));
  }
  RT_ASSIGN_OR_RETURN(auto metrics, MetricsWriter::Open(path() + "/metrics.jsonl", step));
  metrics_ = std::move(metrics);
  return OkStatus();
}

void RunDirectory::Record(const Metrics& metrics) {
  const Status status = metrics_->Write(metrics);
  if (status.ok() || warned_) return;
  warned_ = true;
  LogWarning(fmt::format("{}; training goes on without these lines", status.message()));
}

void RunDirectory::RecordLate(const std::vector<Metrics>& step) {
  if (step.empty()) return;
  auto metrics = MetricsWriter::Open(path() + "/metrics.jsonl", step.front().step - 1);
  if (!metrics.ok()) return LogWarning(metrics.status().message());
  metrics_ = *std::move(metrics);
  for (const Metrics& line : step) Record(line);
}

}  // namespace ringtail
