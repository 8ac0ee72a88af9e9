#include "core/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <span>

#include "core/file.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 30;  // four million lines

// Whether a run that resumes after `resumed_step` keeps this line.
bool IsKept(std::string_view line, int64_t resumed_step) {
  const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;  // torn
  const auto step = json.find("step");
  return step != json.end() && step->is_number_integer() && step->get<int64_t>() <= resumed_step;
}

std::string KeptLines(std::string_view text, int64_t resumed_step) {
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) break;  // a line without its end is torn
    const std::string_view line = text.substr(begin, end - begin);
    if (IsKept(line, resumed_step)) kept.append(line).push_back('\n');
    begin = end + 1;
  }
  return kept;
}

// Leaves in `path` the lines that are kept; a missing file becomes an empty one.
Status Repair(const std::string& path, int64_t resumed_step) {
  StatusOr<std::string> text = ReadFileText(path, kMaxFileBytes);
  if (!text.ok() && text.status().code() != StatusCode::kNotFound) return text.status();
  const std::string old = text.ok() ? *std::move(text) : "";
  const std::string kept = KeptLines(old, resumed_step);
  return kept == old ? OkStatus() : WriteFileAtomic(path, kept);
}

void AddRank(const RankMetrics& rank, nlohmann::ordered_json* json) {
  (*json)["data_wait_ms"] = rank.data_wait_ms;
  (*json)["forward_ms"] = rank.forward_ms;
  (*json)["backward_ms"] = rank.backward_ms;
  (*json)["exposed_comm_ms"] = rank.exposed_comm_ms;
  (*json)["hidden_comm_ms"] = rank.hidden_comm_ms;
  (*json)["comm_bytes"] = rank.comm_bytes;
  (*json)["encode_ms"] = rank.encode_ms;
  (*json)["decode_ms"] = rank.decode_ms;
}

}  // namespace

std::string MetricsJson(const Metrics& m) {
  nlohmann::ordered_json json;  // writes non-finite numbers as null
  json["kind"] = m.kind == Metrics::Kind::kStep ? "step" : "evaluation";
  json["step"] = m.step;
  json["epoch"] = m.epoch;
  json["loss"] = m.loss;
  json["accuracy"] = m.accuracy;
  json["learning_rate"] = m.learning_rate;
  json["batch"] = nullptr;
  if (m.batch > 0) json["batch"] = m.batch;
  json["noise_scale"] = m.noise_scale;
  json["images_per_s"] = m.images_per_s;
  json["step_ms"] = m.step_ms;
  AddRank(m.own, &json);
  json["ranks"] = nullptr;
  for (const RankMetrics& rank : m.ranks) {
    auto& entry = json["ranks"].emplace_back();
    entry["batch"] = nullptr;
    if (rank.batch > 0) entry["batch"] = rank.batch;
    AddRank(rank, &entry);
  }
  return json.dump();
}

StatusOr<MetricsWriter> MetricsWriter::Open(const std::string& path, int64_t resumed_step) {
  RT_RETURN_IF_ERROR(Repair(path, resumed_step).Annotate("preparing the metrics file"));
  RT_ASSIGN_OR_RETURN(FileDescriptor file,
                      FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Write(const Metrics& metrics) {
  const std::string line = MetricsJson(metrics) + '\n';
  struct stat before = {};
  const bool known = fstat(file_.number(), &before) == 0;
  Status status = file_.Write(std::as_bytes(std::span(line)));
  // A full disk may have taken a part of the line: the next one must not begin behind it.
  if (!status.ok() && known && ftruncate(file_.number(), before.st_size) != 0) {
    return status.Annotate("and the torn line could not be removed");
  }
  return status;
}

}  // namespace ringtail
