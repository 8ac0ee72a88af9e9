#include "apps/trainer/checkpoint/resume_point.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "apps/trainer/checkpoint/config_difference.h"
#include "apps/trainer/checkpoint/metadata_text.h"
#include "apps/trainer/checkpoint/model_file.h"
#include "core/config/text_config.h"
#include "core/text/utf8.h"
#include "dist/membership/identity/rank_identity.h"

namespace ringtail {
namespace {

// Beside those of a model file and kRoutesKey. Persisted: the spelling of a key never changes.
constexpr char kFingerprintKey[] = "data_fingerprint";
constexpr char kContentsKey[] = "data_contents";
constexpr char kImagesKey[] = "images";       // how many, in words
constexpr char kOldImagesKey[] = "pictures";  // the same, in older checkpoints
constexpr char kGlobalBatchKey[] = "global_batch";
constexpr char kBatchesKey[] = "local_batches";  // "43,21"
constexpr char kThreadsOfRanksKey[] = "threads_of_ranks";
constexpr char kMachinesKey[] = "machines";  // a line for each rank, if divided by speed
constexpr char kThreadsKey[] = "compute_threads";
constexpr char kIsaKey[] = "instruction_set";
constexpr char kMatricesKey[] = "update_matrices";  // not in older checkpoints
constexpr char kAlgorithmsKey[] = "convolution_algorithms";
constexpr char kAllreducesKey[] = "allreduce_algorithms";
constexpr char kLocalKey[] = "local_rounds";          // LocalProgress: "12,1,4,0,3,0.5,0.1,64"
constexpr char kServersKey[] = "servers";             // ServerProgress
constexpr char kServerRuleKey[] = "server_rule";      // RuleScalars
constexpr char kLastAccuracyKey[] = "last_accuracy";  // not in older checkpoints
constexpr char kUnimprovedKey[] = "evaluations_since_best";  // likewise
constexpr char kWrittenAfterKey[] = "written_after";

constexpr int64_t kMostThreads = 4096;  // as --threads

// Every field of the progress with its key, for both directions.
template <typename Progress, typename Visit>
void ForEachField(Progress* progress, const Visit& visit) {
  visit("completed_steps", &progress->step);
  visit("evaluated_step", &progress->evaluated_step);
  visit("best_step", &progress->best_step);
  visit("best_accuracy", &progress->best_accuracy);
  visit(kLastAccuracyKey, &progress->last_accuracy);
  visit("skipped_steps", &progress->skipped_steps);
  visit("skipped_in_a_row", &progress->skipped_in_a_row);
  visit(kUnimprovedKey, &progress->unimproved);
}

Status CheckBetween(const char* key, double value, double low, double high) {
  if (value >= low && value <= high) return OkStatus();  // false for a NaN
  return DataLoss(
      fmt::format("'{}' is {}, which is not between {} and {}: the checkpoint is damaged", key,
                  value, low, high));
}

// No run comes to a state that says otherwise.
Status CheckPlausible(const TrainingProgress& progress) {
  constexpr double kMostSteps = 1e12;
  const auto step = static_cast<double>(progress.step);
  RT_RETURN_IF_ERROR(CheckBetween("completed_steps", step, 0, kMostSteps));
  const auto between = [](const char* key, int64_t value, double low, double high) {
    return CheckBetween(key, static_cast<double>(value), low, high);
  };
  RT_RETURN_IF_ERROR(between("evaluated_step", progress.evaluated_step, 0, step));
  RT_RETURN_IF_ERROR(between("best_step", progress.best_step, -1, step));
  RT_RETURN_IF_ERROR(CheckBetween("best_accuracy", progress.best_accuracy, -1, 1));
  RT_RETURN_IF_ERROR(CheckBetween(kLastAccuracyKey, progress.last_accuracy, -1, 1));
  // Ranks that take steps of their own leave them out one by one; the run may have had more ranks
  // once than when this was written.
  RT_RETURN_IF_ERROR(between("skipped_steps", progress.skipped_steps, 0, step * kMaxWorldSize));
  RT_RETURN_IF_ERROR(between(kUnimprovedKey, progress.unimproved, -1, step));
  return between("skipped_in_a_row", progress.skipped_in_a_row, 0, step);
}

StatusOr<TrainingProgress> ParseProgress(const Metadata& metadata) {
  TrainingProgress progress{.unimproved = -1};
  const std::set<std::string_view> new_keys = {kLastAccuracyKey, kUnimprovedKey};
  Status status = OkStatus();
  ForEachField(&progress, [&](const char* key, auto* value) {
    if (!status.ok()) return;
    const auto found = metadata.find(key);
    if (found == metadata.end() && new_keys.contains(key)) return;
    if (found == metadata.end()) {
      status =
          DataLoss(fmt::format("'{}' is missing: this is no checkpoint of a training run", key));
      return;
    }
    const auto number = ParseNumber<std::decay_t<decltype(*value)>>(found->second);
    if (number) {
      *value = *number;
    } else {
      status = DataLoss(fmt::format("'{}' is '{}', which is no number", key, found->second));
    }
  });
  RT_RETURN_IF_ERROR(std::move(status));
  RT_RETURN_IF_ERROR(CheckPlausible(progress));
  return progress;
}

StatusOr<RankBatches> ParseDivision(const Metadata& metadata) {
  RankBatches division;
  const auto global = ParseNumber<int64_t>(TextOf(metadata, kGlobalBatchKey));
  division.global_batch = std::max<int64_t>(global.value_or(0), 0);
  RT_ASSIGN_OR_RETURN(division.batches,
                      ParseNumberList(kBatchesKey, TextOf(metadata, kBatchesKey)));
  const std::string threads = TextOf(metadata, kThreadsOfRanksKey);
  RT_ASSIGN_OR_RETURN(division.threads, ParseNumberList(kThreadsOfRanksKey, threads));
  division.machines = SplitText(TextOf(metadata, kMachinesKey), '\n');
  if (std::ranges::any_of(division.threads, [](int64_t t) { return t > kMostThreads; })) {
    return DataLoss(
        fmt::format("'{}' is '{}', but no rank has more than {} threads: the checkpoint is damaged",
                    kThreadsOfRanksKey, threads, kMostThreads));
  }
  int64_t rest = division.global_batch;  // no sum, which might overflow
  const bool fits = std::ranges::all_of(division.batches, [&](int64_t batch) {
    const bool has = batch <= rest;
    if (has) rest -= batch;
    return has;
  });
  if (division.batches.empty() || (fits && rest == 0)) return division;
  return DataLoss(
      fmt::format("the ranks' batches {} do not add up to {}: the checkpoint is damaged",
                  TextOf(metadata, kBatchesKey), division.global_batch));
}

constexpr size_t kOldLocalFields = 7;  // in older checkpoints, without the last one

// Visits every field, for both directions.
template <typename Local, typename Visit>
void ForEachLocalField(Local* local, const Visit& visit) {
  visit(&local->rounds);
  visit(&local->offers);
  visit(&local->period.measured);
  visit(&local->period.longest);
  visit(&local->period.watched);
  visit(&local->period.cosines);
  visit(&local->period.squares);
  visit(&local->period.measured_size);
}

std::string LocalText(const LocalProgress& local) {
  std::vector<std::string> parts;
  ForEachLocalField(&local, [&](const auto* field) { parts.push_back(fmt::format("{}", *field)); });
  return fmt::format("{}", fmt::join(parts, ","));
}

// `step`: steps done.
StatusOr<LocalProgress> ParseLocal(const std::string& text, int64_t step) {
  LocalProgress local;
  if (text.empty()) return local;
  std::vector<std::string> parts = SplitText(text, ',');
  if (parts.size() == kOldLocalFields) parts.emplace_back("0");
  size_t next = 0;
  bool whole = true;
  ForEachLocalField(&local, [&](auto* field) {
    const auto number = ParseNumber<std::decay_t<decltype(*field)>>(
        next < parts.size() ? std::string_view(parts[next]) : std::string_view());
    ++next;
    whole = whole && number && std::isfinite(static_cast<double>(*number));
    if (whole) *field = *number;
  });
  const PeriodProgress& period = local.period;
  const bool plausible = std::min({local.rounds, local.offers, period.measured, period.longest,
                                   period.watched, period.measured_size}) >= 0;
  if (whole && plausible && next == parts.size() && local.offers <= step) return local;
  return DataLoss(fmt::format(
      "'{}' is '{}', not eight numbers with at most {} steps of a round: the checkpoint "
      "is damaged",
      kLocalKey, text, step));
}

// What cannot be read is not known: other threads only change the last bits.
Numerics ParseNumerics(const Metadata& metadata) {
  const auto threads = ParseNumber<int>(TextOf(metadata, kThreadsKey));
  const bool plausible = threads && *threads >= 1 && *threads <= kMostThreads;
  return {.threads = plausible ? *threads : 0,
          .isa = TextOf(metadata, kIsaKey),
          .matrices = TextOf(metadata, kMatricesKey)};
}

DataIdentity ParseIdentity(const Metadata& metadata) {
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found != metadata.end() ? std::optional(found->second) : std::nullopt;
  };
  const auto counts = text(kImagesKey);
  return {.fingerprint = TextOf(metadata, kFingerprintKey),
          .contents = text(kContentsKey),
          .counts = counts ? counts : text(kOldImagesKey)};
}

Status Parse(const Metadata& metadata, const std::string& path, ResumeHead* point) {
  if (!metadata.contains(kConfigKey) || !metadata.contains(kFingerprintKey)) {
    return FailedPrecondition(
        fmt::format("{}: this is no checkpoint of a run; resume from the run's folder, or from a "
                    "step-*.safetensors in its checkpoints/",
                    path));
  }
  point->path = path;
  point->config_text = TextOf(metadata, kConfigKey);
  point->data = ParseIdentity(metadata);
  RT_RETURN_IF_ERROR(ParseTextConfig(point->config_text, path, &point->config, nullptr));
  point->numerics = ParseNumerics(metadata);
  point->algorithms = TextOf(metadata, kAlgorithmsKey);
  point->written_after = TextOf(metadata, kWrittenAfterKey);
  auto progress = ParseProgress(metadata);
  RT_RETURN_IF_ERROR(progress.status().Annotate(path));
  point->progress = *progress;
  auto division = ParseDivision(metadata);
  RT_RETURN_IF_ERROR(division.status().Annotate(path));
  point->division = *std::move(division);
  auto allreduces = ParseAllreduces(TextOf(metadata, kAllreducesKey));
  RT_RETURN_IF_ERROR(allreduces.status().Annotate(path));
  point->allreduces = *std::move(allreduces);
  auto local = ParseLocal(TextOf(metadata, kLocalKey), point->progress.step);
  RT_RETURN_IF_ERROR(local.status().Annotate(path));
  point->local = *local;
  auto servers = ParseServerProgress(TextOf(metadata, kServersKey));
  RT_RETURN_IF_ERROR(servers.status().Annotate(path));
  point->servers = *std::move(servers);
  auto server_rule = ParseRuleScalars(TextOf(metadata, kServerRuleKey));
  RT_RETURN_IF_ERROR(server_rule.status().Annotate(path));
  point->server_rule = *server_rule;
  if (!metadata.contains(kRoutesKey)) return OkStatus();
  auto compression = ParseRoutes(TextOf(metadata, kRoutesKey));
  RT_RETURN_IF_ERROR(compression.status().Annotate(path));
  point->compression = *std::move(compression);
  return OkStatus();
}

}  // namespace

StatusOr<ResumePoint> ReadResumePoint(Checkpoint checkpoint) {
  ResumePoint point;
  RT_RETURN_IF_ERROR(Parse(checkpoint.file.metadata(), checkpoint.path, &point));
  point.agreed_ranks = checkpoint.agreed_ranks();
  point.parts = PartsOf(checkpoint);
  point.tensors = std::move(checkpoint.file);
  return point;
}

StatusOr<ResumeHead> ReadResumeHead(const CheckpointHead& checkpoint) {
  ResumeHead head;
  RT_RETURN_IF_ERROR(Parse(checkpoint.metadata, checkpoint.path, &head));
  head.agreed_ranks = checkpoint.agreed_ranks();
  return head;
}

Metadata MetadataOf(const ResumePoint& point, const std::vector<std::string>& class_names) {
  Metadata metadata = ModelMetadata(point.config, class_names);
  // fmt prints the shortest text that reads back to the same bits.
  ForEachField(&point.progress, [&](const char* key, const auto* value) {
    metadata[key] = fmt::format("{}", *value);
  });
  metadata[kFingerprintKey] = point.data.fingerprint;
  if (point.data.contents) metadata[kContentsKey] = *point.data.contents;
  if (point.data.counts) metadata[kImagesKey] = *point.data.counts;
  metadata[kGlobalBatchKey] = std::to_string(point.division.global_batch);
  metadata[kBatchesKey] = NumberList(point.division.batches);
  metadata[kThreadsOfRanksKey] = NumberList(point.division.threads);
  if (!point.division.machines.empty()) {
    metadata[kMachinesKey] = fmt::format("{}", fmt::join(point.division.machines, "\n"));
  }
  metadata[kThreadsKey] = std::to_string(point.numerics.threads);
  metadata[kIsaKey] = point.numerics.isa;
  if (!point.numerics.matrices.empty()) metadata[kMatricesKey] = point.numerics.matrices;
  metadata[kAlgorithmsKey] = point.algorithms;
  if (!point.allreduces.empty()) metadata[kAllreducesKey] = AllreducesText(point.allreduces);
  if (const LocalProgress& l = point.local; l.rounds > 0 || l.offers > 0) {
    metadata[kLocalKey] = LocalText(l);
  }
  if (!point.servers.empty()) {
    metadata[kServersKey] = ServerProgressText(point.servers);
    metadata[kServerRuleKey] = RuleScalarsText(point.server_rule);
  }
  if (point.compression.world > 0) metadata[kRoutesKey] = RoutesText(point.compression);
  metadata[kAgreedRanksKey] = std::to_string(point.agreed_ranks);
  if (!point.written_after.empty()) {
    metadata[kWrittenAfterKey] =
        point.written_after.substr(0, ValidUtf8Prefix(point.written_after));
  }
  return metadata;
}

Status CheckSameRun(const ResumePoint& point, const RunConfig& config, const DataIdentity& data) {
  if (!point.tensors) return OkStatus();
  RT_RETURN_IF_ERROR(CheckResumable(point.config, config).Annotate(point.path));
  if (point.data.fingerprint != data.fingerprint) {
    return FailedPrecondition(
        fmt::format("{}: the images or their split are not those that the run began with ({}; "
                    "now {}); give it the same --data and data.split, or begin a run in another "
                    "--output",
                    point.path, point.data.counts.value_or("no count of them is kept"),
                    data.counts.value_or("not counted")));
  }
  // Checkpoints from before there was such a key do not know.
  if (point.data.contents && point.data.contents != data.contents) {
    return FailedPrecondition(fmt::format(
        "{}: the images have the names and labels that the run began with, but what is in their "
        "files is not the same; give it the files of then (--data), or begin a run in another "
        "--output",
        point.path));
  }
  return OkStatus();
}

}  // namespace ringtail
