#include "layers/algorithm_choices.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/logging.h"
#include "core/storage/file.h"
#include "layers/onednn/onednn_version.h"

namespace ringtail {
namespace {

using Json = nlohmann::json;
using Choices = std::map<std::string, AlgorithmChoice>;
constexpr int kFormat = 1;
// To be raised when a kernel of ours becomes faster or slower: older measurements are then
// forgotten. A new algorithm does not need it.
constexpr int kKernelsVersion = 5;
constexpr int64_t kMaxFileBytes = int64_t{64} << 20;

std::string CachePath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.cache";
  } else {
    return {};
  }
  return folder + "/ringtail/convolutions.json";
}

std::string Write(const Choices& choices, const std::string& versions) {
  Json entries = Json::object();
  for (const auto& [key, choice] : choices) {
    entries[key] = {{"algorithm", choice.algorithm}, {"seconds", choice.seconds}};
  }
  return Json{{"format", kFormat}, {"versions", versions}, {"choices", std::move(entries)}}.dump(1);
}

bool ReadEntry(const Json& entry, AlgorithmChoice* choice) {
  const auto algorithm = entry.find("algorithm");
  const auto seconds = entry.find("seconds");
  if (algorithm == entry.end() || !algorithm->is_string()) return false;
  if (seconds == entry.end() || !seconds->is_object()) return false;
  choice->algorithm = algorithm->get<std::string>();
  for (const auto& [name, value] : seconds->items()) {
    if (!value.is_number()) return false;
    choice->seconds[name] = value.get<double>();
  }
  return true;
}

StatusOr<Choices> Read(std::string_view text, const std::string& versions) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgument("not a JSON object");
  const auto format = json.find("format");
  const auto of = json.find("versions");
  const auto entries = json.find("choices");
  if (format == json.end() || !format->is_number_integer() || *format != kFormat) {
    return InvalidArgument(fmt::format("its format is not {}", kFormat));
  }
  if (of == json.end() || !of->is_string() || *of != versions) {
    return FailedPrecondition(fmt::format("it is not of {}", versions));
  }
  if (entries == json.end() || !entries->is_object()) return InvalidArgument("it has no choices");
  Choices choices;
  for (const auto& [key, entry] : entries->items()) {
    if (!entry.is_object() || !ReadEntry(entry, &choices[key])) {
      return InvalidArgument(fmt::format("'{}' is not a choice", key));
    }
  }
  return choices;
}

// Whether `choice` was made among all that `other` was made among.
bool HasMeasured(const AlgorithmChoice& choice, const AlgorithmChoice& other) {
  return std::ranges::all_of(other.seconds,
                             [&](const auto& s) { return choice.seconds.contains(s.first); });
}

// No file, or one of other versions: no choices.
StatusOr<Choices> ReadFile(const std::string& path, const std::string& versions) {
  if (path.empty()) return Choices{};
  const auto text = ReadFileText(path, kMaxFileBytes);
  if (text.status().code() == StatusCode::kNotFound) return Choices{};
  RT_RETURN_IF_ERROR(Status(text.status()));
  auto choices = Read(*text, versions);
  if (choices.status().code() == StatusCode::kFailedPrecondition) return Choices{};
  RT_RETURN_IF_ERROR(choices.status().Annotate(path));
  return choices;
}

}  // namespace

AlgorithmChoices AlgorithmChoices::FromUserCache() {
  return {CachePath(), fmt::format("oneDNN {}, kernels {}", OneDnnVersion(), kKernelsVersion)};
}

AlgorithmChoices::AlgorithmChoices(std::string path, std::string versions)
    : path_(std::move(path)), versions_(std::move(versions)) {
  auto choices = ReadFile(path_, versions_);
  if (choices.ok()) {
    measured_ = *std::move(choices);
  } else {
    LogWarning(fmt::format("{}; convolutions are measured again", choices.status().message()));
  }
}

const AlgorithmChoice* AlgorithmChoices::Find(const std::string& key) {
  const AlgorithmChoice* choice = Peek(key);
  if (choice != nullptr) used_.insert(key);
  return choice;
}

const AlgorithmChoice* AlgorithmChoices::Peek(const std::string& key) const {
  for (const Choices* choices : {&kept_, &measured_}) {
    const auto it = choices->find(key);
    if (it != choices->end()) return &it->second;
  }
  return nullptr;
}

void AlgorithmChoices::Add(const std::string& key, AlgorithmChoice choice) {
  if (resumed_) {
    resumed_ = false;
    LogWarning(
        "the run's convolution algorithms are not known for this machine and these shapes; "
        "it continues just as well, but perhaps to other bits");
  }
  kept_.erase(key);
  measured_[key] = std::move(choice);
  used_.insert(key);
  added_.insert(key);
}

void AlgorithmChoices::Keep(const std::string& key, AlgorithmChoice choice) {
  kept_[key] = std::move(choice);
  used_.insert(key);
}

std::string AlgorithmChoices::Used() const {
  Choices used;
  for (const std::string& key : used_) {
    const auto kept = kept_.find(key);
    used.emplace(key, kept != kept_.end() ? kept->second : measured_.at(key));
  }
  return Write(used, versions_);
}

Status AlgorithmChoices::KeepAll(std::string_view json) {
  RT_ASSIGN_OR_RETURN(Choices choices, Read(json, versions_));
  for (auto& [key, choice] : choices) Keep(key, std::move(choice));
  return OkStatus();
}

void AlgorithmChoices::Save() {
  if (added_.empty() || path_.empty()) return;
  // An entry that another process has added since stays, unless it lacks algorithms; a damaged file
  // is replaced.
  Choices all;
  if (auto others = ReadFile(path_, versions_); others.ok()) all = *std::move(others);
  for (const auto& [key, choice] : measured_) {
    const auto [other, is_new] = all.emplace(key, choice);
    if (!is_new && added_.contains(key) && !HasMeasured(other->second, choice)) {
      other->second = choice;
    }
  }
  added_.clear();
  Status status = MakeDirectories(std::filesystem::path(path_).parent_path());
  if (status.ok()) status = WriteFileAtomic(path_, Write(all, versions_));
  if (!status.ok()) {
    LogWarning(
        fmt::format("{}; the next run will measure its convolutions again", status.message()));
  }
}

}  // namespace ringtail
