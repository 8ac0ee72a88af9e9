#include "apps/trainer/checkpoint/saved_division.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/trainer/checkpoint/model_file.h"

namespace ringtail {
namespace {

constexpr char kBatchesKey[] = "local_batches", kMachinesKey[] = "machines";
constexpr char kThreadsKey[] = "threads_of_ranks";
constexpr int64_t kMostThreads = 4096;  // as --threads

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<int64_t> PositiveNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number > 0 ? std::optional(number) : std::nullopt;
}

std::string List(const std::vector<int64_t>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

// Of what List has written under `key`.
StatusOr<std::vector<int64_t>> Numbers(const char* key, const std::string& text) {
  std::vector<int64_t> numbers;
  for (const std::string& part : Split(text, ',')) {
    const auto number = PositiveNumber(part);
    if (!number) {
      return DataLoss(fmt::format(
          "'{}' is '{}', no list of positive numbers: the checkpoint is damaged", key, text));
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

StatusOr<RankBatches> ReadDivision(const Checkpoint& checkpoint) {
  const std::map<std::string, std::string>& metadata = checkpoint.file.metadata();
  const auto text = [&](const char* key) {
    const auto found = metadata.find(key);
    return found != metadata.end() ? found->second : std::string();
  };
  RankBatches saved;
  saved.global_batch = PositiveNumber(text(kGlobalBatchKey)).value_or(0);
  for (auto& [key, numbers] :
       {std::pair(kBatchesKey, &saved.batches), std::pair(kThreadsKey, &saved.threads)}) {
    auto read = Numbers(key, text(key));
    RT_RETURN_IF_ERROR(read.status().Annotate(checkpoint.path));
    *numbers = *std::move(read);
  }
  if (std::ranges::any_of(saved.threads, [](int64_t t) { return t > kMostThreads; })) {
    return DataLoss(fmt::format(
        "{}: '{}' is '{}', but no rank has more than {} threads: the checkpoint is damaged",
        checkpoint.path, kThreadsKey, text(kThreadsKey), kMostThreads));
  }
  saved.machines = Split(text(kMachinesKey), '\n');
  const int64_t sum = std::accumulate(saved.batches.begin(), saved.batches.end(), int64_t{0});
  if (saved.batches.empty() || sum == saved.global_batch) return saved;
  return DataLoss(
      fmt::format("{}: the ranks' batches {} do not add up to {}: the checkpoint is damaged",
                  checkpoint.path, text(kBatchesKey), saved.global_batch));
}

void AddDivision(const RankBatches& division, std::map<std::string, std::string>* metadata) {
  (*metadata)[kGlobalBatchKey] = std::to_string(division.global_batch);
  (*metadata)[kBatchesKey] = List(division.batches);
  (*metadata)[kThreadsKey] = List(division.threads);
  if (!division.machines.empty()) {
    (*metadata)[kMachinesKey] = fmt::format("{}", fmt::join(division.machines, "\n"));
  }
}

StatusOr<RankBatches> ShareDivision(const RankBatches& saved, TrainingWorld* world) {
  RankBatches shared;
  RT_ASSIGN_OR_RETURN(const std::string global,
                      world->ShareText(std::to_string(saved.global_batch)));
  RT_ASSIGN_OR_RETURN(const std::string batches, world->ShareText(List(saved.batches)));
  RT_ASSIGN_OR_RETURN(const std::string machines,
                      world->ShareText(fmt::format("{}", fmt::join(saved.machines, "\n"))));
  shared.global_batch = PositiveNumber(global).value_or(0);
  RT_ASSIGN_OR_RETURN(shared.batches, Numbers(kBatchesKey, batches));
  shared.machines = Split(machines, '\n');
  return shared;
}

}  // namespace ringtail
