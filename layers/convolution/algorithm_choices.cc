#include "layers/convolution/algorithm_choices.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/file.h"
#include "core/logging.h"

namespace ringtail {
namespace {

using Json = nlohmann::json;
using Choices = std::map<std::string, AlgorithmChoice>;
constexpr int kFormat = 1;
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

std::string Write(const Choices& choices) {
  Json entries = Json::object();
  for (const auto& [key, choice] : choices) {
    entries[key] = {{"algorithm", choice.algorithm}, {"seconds", choice.seconds}};
  }
  return Json{{"format", kFormat}, {"choices", std::move(entries)}}.dump(1);
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

StatusOr<Choices> Read(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return InvalidArgument("not a JSON object");
  const auto format = json.find("format");
  const auto entries = json.find("choices");
  if (format == json.end() || !format->is_number_integer() || *format != kFormat) {
    return InvalidArgument(fmt::format("its format is not {}", kFormat));
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

StatusOr<Choices> ReadFile(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return Choices{};
  RT_ASSIGN_OR_RETURN(const std::string text, ReadFileText(path, kMaxFileBytes));
  auto choices = Read(text);
  RT_RETURN_IF_ERROR(choices.status().Annotate(path));
  return choices;
}

}  // namespace

AlgorithmChoices& AlgorithmChoices::Shared() {
  static AlgorithmChoices choices(CachePath());
  return choices;
}

AlgorithmChoices::AlgorithmChoices(std::string path) : path_(std::move(path)) {
  auto choices = ReadFile(path_);
  if (choices.ok()) {
    choices_ = *std::move(choices);
  } else {
    LogWarning(fmt::format("{}; convolutions are measured again", choices.status().message()));
  }
}

const AlgorithmChoice* AlgorithmChoices::Find(const std::string& key) {
  const auto it = choices_.find(key);
  if (it == choices_.end()) return nullptr;
  used_.insert(key);
  return &it->second;
}

void AlgorithmChoices::Add(const std::string& key, AlgorithmChoice choice) {
  choices_[key] = std::move(choice);
  used_.insert(key);
  changed_ = true;
}

std::string AlgorithmChoices::Used() const {
  Choices used;
  for (const std::string& key : used_) used.emplace(key, choices_.at(key));
  return Write(used);
}

Status AlgorithmChoices::Merge(std::string_view json) {
  RT_ASSIGN_OR_RETURN(Choices taken, Read(json));
  for (auto& [key, choice] : taken) choices_[key] = std::move(choice);
  return OkStatus();
}

void AlgorithmChoices::Save() {
  if (!changed_ || path_.empty()) return;
  changed_ = false;
  Choices all = choices_;
  // What another process has found meanwhile; a damaged file is replaced.
  if (auto others = ReadFile(path_); others.ok()) all.merge(*others);
  Status status = MakeDirectories(std::filesystem::path(path_).parent_path());
  if (status.ok()) status = WriteFileAtomic(path_, Write(all));
  if (!status.ok()) {
    LogWarning(fmt::format("{}; the next run will measure its convolutions again",
                           status.message()));
  }
}

}  // namespace ringtail
