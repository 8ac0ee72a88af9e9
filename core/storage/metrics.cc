#include "core/storage/metrics.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "core/storage/metrics_repair.h"

namespace ringtail {
namespace {

const char* NameOf(Metrics::Kind kind) {
  switch (kind) {
    case Metrics::Kind::kStep:
      return "step";
    case Metrics::Kind::kEvaluation:
      return "evaluation";
    case Metrics::Kind::kRound:
      return "round";
    case Metrics::Kind::kUpdate:
      return "update";
    case Metrics::Kind::kPrediction:
      break;
  }
  return "prediction";
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

void AddServers(const ServerMetrics& servers, nlohmann::ordered_json* json) {
  (*json)["version"] = servers.version;
  (*json)["staleness_mean"] = servers.staleness;
  (*json)["staleness_p95"] = servers.staleness_p95;
  (*json)["staleness_max"] = servers.most_stale;
  (*json)["staleness_histogram"] = servers.staleness_histogram;
  (*json)["blocked_ms"] = servers.blocked_ms;
  (*json)["discarded"] = servers.discarded;
  (*json)["refused"] = servers.refused;
}

std::string PredictionJson(const Metrics& m) {
  nlohmann::ordered_json json = {{"kind", NameOf(m.kind)},
                                 {"step", m.step},
                                 {"steps", m.compared_steps},
                                 {"image_size", m.image_size}};
  for (const PredictedTerm& term : m.terms) {
    json["terms"][term.name] = {{"predicted_ms", term.predicted_ms},
                                {"measured_ms", term.measured_ms}};
  }
  return json.dump();
}

}  // namespace

double UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) /
         1e3;
}

std::string MetricsJson(const Metrics& m) {
  if (m.kind == Metrics::Kind::kPrediction) return PredictionJson(m);
  nlohmann::ordered_json json;  // writes non-finite numbers as null
  json["kind"] = NameOf(m.kind);
  json["step"] = m.step;
  json["epoch"] = m.epoch;
  json["loss"] = m.loss;
  json["accuracy"] = m.accuracy;
  json["learning_rate"] = m.learning_rate;
  json["batch"] = nullptr;
  if (m.batch > 0) json["batch"] = m.batch;
  if (m.kind == Metrics::Kind::kRound) {
    json["local_steps"] = m.local_steps;
    json["cosine"] = m.cosine;
  }
  if (m.kind == Metrics::Kind::kUpdate) AddServers(m.servers, &json);
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
  RT_RETURN_IF_ERROR(RepairMetrics(path, resumed_step).Annotate("preparing the metrics file"));
  RT_ASSIGN_OR_RETURN(FileDescriptor file,
                      FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_APPEND));
  return MetricsWriter(std::move(file));
}

Status MetricsWriter::Write(const Metrics& metrics) {
  std::string line = MetricsJson(metrics);
  const double time = std::isfinite(metrics.time) ? metrics.time : UnixSeconds();
  line.insert(line.size() - 1, ",\"time\":" + nlohmann::json(time).dump());
  line += '\n';
  struct stat before = {};
  const bool known = fstat(file_.number(), &before) == 0;
  Status status = file_.Write(std::as_bytes(std::span(line)));
  // A full disk may have taken a part of the line: the next line must not follow it.
  if (!status.ok() && known && ftruncate(file_.number(), before.st_size) != 0) {
    return status.Annotate("and the torn line could not be removed");
  }
  return status;
}

}  // namespace ringtail
