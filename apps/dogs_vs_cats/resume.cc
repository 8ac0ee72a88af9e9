#include "apps/dogs_vs_cats/resume.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

bool IsIn(const std::string& file, const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::path(file).parent_path(), folder, ignored);
}

}  // namespace

std::string OutputFolder(const ResumeFlags& flags, const std::string& config) {
  if (!flags.output.empty()) return flags.output;
  if (IsFolder(flags.from)) return flags.from;
  const std::filesystem::path folder = std::filesystem::path(flags.from).parent_path();
  if (folder.filename() == kCheckpointFolder) {
    return folder.has_parent_path() ? folder.parent_path().string() : ".";
  }
  const std::string name = std::filesystem::path(config).stem().string();
  return "runs/" + (name.empty() ? "dogs_vs_cats" : name);
}

StatusOr<ResumePoint> FindResumePoint(const ResumeFlags& flags, const std::string& output,
                                      CheckParts parts) {
  if (!flags.resume) return ResumePoint();
  const bool named = !flags.from.empty();
  auto checkpoint = named && !IsFolder(flags.from)
                        ? LoadCheckpoint(flags.from, parts)
                        : LoadNewestCheckpoint(named ? flags.from : output, parts);
  if (checkpoint.ok()) return ReadResumePoint(*std::move(checkpoint));
  if (named || checkpoint.status().code() != StatusCode::kNotFound) return checkpoint.status();
  return ResumePoint();
}

std::optional<std::string> ConfigOfRun(const ResumeFlags& flags, const std::string& output) {
  std::string path = output + "/" + kConfigName;
  std::error_code ignored;
  if (!flags.resume || !std::filesystem::exists(path, ignored)) return std::nullopt;
  return path;
}

StatusOr<LoadedConfig> LoadConfig(const ConfigFlags& flags, const ResumePoint& point,
                                  const std::optional<std::string>& config_of_run) {
  if (!flags.config.empty()) return LoadRunConfig(flags.config, flags.set);
  if (point.empty()) return LoadRunConfig(config_of_run.value_or(""), flags.set);
  return ParseRunConfig(point.config_text, point.path, flags.set);
}

Status CheckOutput(const ResumeFlags& flags, const ResumePoint& point,
                   const RunDirectory& directory) {
  if (!directory.HasCheckpoints()) return OkStatus();
  const std::string checkpoints = directory.path() + "/" + kCheckpointFolder;
  if (!point.empty() && IsIn(point.path, checkpoints)) return OkStatus();
  if (!point.empty()) {
    return FailedPrecondition(fmt::format("{} holds another run than {}; give another --output",
                                          directory.path(), point.path));
  }
  if (flags.resume) return OkStatus();
  return FailedPrecondition(
      fmt::format("{} holds a run already; continue it with --resume, or give another --output",
                  directory.path()));
}

}  // namespace ringtail
