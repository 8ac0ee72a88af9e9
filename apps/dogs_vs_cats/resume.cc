#include "apps/dogs_vs_cats/resume.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "apps/plan/auto_plan.h"
#include "apps/plan/follow_plan.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

bool IsIn(const std::string& file, const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::path(file).parent_path(), folder, ignored);
}

bool NamesFile(const ResumeFlags& flags) { return !flags.from.empty() && !IsFolder(flags.from); }

const std::string& FolderOf(const ResumeFlags& flags, const std::string& output) {
  return flags.from.empty() ? output : flags.from;
}

// The ranks that a plan lets train (FollowPlan); all, if the run follows none.
RankGroup RanksThatTrain(const ResumeHead& head, const DistConfig& config, int world_size) {
  const Planned& plan = config.has_planned() ? config.planned() : head.config.dist().planned();
  return BeganByPlan(head) ? TrainingRanks(plan, world_size) : RankGroup::World(world_size);
}

StatusOr<LoadedConfig> LoadWith(const std::vector<std::string>& set, const std::string& config,
                                const std::optional<ResumeHead>& head,
                                const std::optional<std::string>& config_of_run) {
  if (!config.empty()) return LoadRunConfig(config, set);
  if (!head) return LoadRunConfig(config_of_run.value_or(""), set);
  return ParseRunConfig(head->config_text, head->path, set);
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

StatusOr<std::optional<ResumeHead>> FindResumeHead(const ResumeFlags& flags,
                                                   const std::string& output) {
  if (!flags.resume) return std::optional<ResumeHead>();
  const auto checkpoint = NamesFile(flags) ? ReadCheckpointHead(flags.from)
                                           : FindNewestCheckpoint(FolderOf(flags, output));
  // Of a run that was ended before its first checkpoint there is the config, in its own folder.
  const bool begins =
      flags.from.empty() || (flags.from == output && ConfigOfRun(flags, output).has_value());
  const bool none_yet = begins && checkpoint.status().code() == StatusCode::kNotFound;
  if (none_yet) return std::optional<ResumeHead>();
  RT_RETURN_IF_ERROR(Status(checkpoint.status()));
  RT_ASSIGN_OR_RETURN(ResumeHead head, ReadResumeHead(*checkpoint));
  return std::optional<ResumeHead>(std::move(head));
}

StatusOr<ResumePoint> LoadResumePoint(const ResumeFlags& flags, const std::string& output,
                                      const std::function<void()>& on_piece) {
  RT_ASSIGN_OR_RETURN(
      Checkpoint checkpoint,
      NamesFile(flags) ? LoadCheckpoint(flags.from, CheckParts::kYes, on_piece)
                       : LoadNewestCheckpoint(FolderOf(flags, output), CheckParts::kYes, on_piece));
  return ReadResumePoint(std::move(checkpoint));
}

std::optional<std::string> ConfigOfRun(const ResumeFlags& flags, const std::string& output) {
  std::string path = output + "/" + kConfigName;
  std::error_code ignored;
  if (!flags.resume || !std::filesystem::exists(path, ignored)) return std::nullopt;
  return path;
}

StatusOr<LoadedConfig> LoadConfig(const ConfigFlags& flags, const std::optional<ResumeHead>& head,
                                  const std::optional<std::string>& config_of_run, bool tells) {
  auto loaded = LoadWith(flags.set, flags.config, head, config_of_run);
  const bool trains_unplanned = head && head->progress.step > 0 && !BeganByPlan(*head);
  if (loaded.ok() || !trains_unplanned) return loaded;
  std::vector<std::string> set = flags.set;
  set.emplace_back("dist.plan=CONFIG");
  auto unplanned = LoadWith(set, flags.config, head, config_of_run);
  if (!unplanned.ok()) return loaded;
  if (tells) TellThatNothingIsPlanned();
  return unplanned;
}

// Saved by the ranks that trained, in their order.
int ThreadsSoFar(const ResumeHead& head, const DistConfig& config, const RankIdentity& identity) {
  const RankGroup trained = RanksThatTrain(head, config, identity.world_size);
  const std::vector<int64_t>& saved = head.division.threads;
  const std::optional<int> member = trained.MemberOf(identity.rank);
  const bool is_saved = member && std::ssize(saved) == trained.size();
  return is_saved ? static_cast<int>(saved[*member]) : head.numerics.threads;
}

Status CheckOutput(const ResumeFlags& flags, const std::optional<ResumeHead>& head,
                   const RunDirectory& directory) {
  if (!directory.HasCheckpoints()) return OkStatus();
  const std::string checkpoints = directory.path() + "/" + kCheckpointFolder;
  if (head && IsIn(head->path, checkpoints)) return OkStatus();
  if (head) {
    return FailedPrecondition(fmt::format("{} holds another run than {}; give another --output",
                                          directory.path(), head->path));
  }
  if (flags.resume) return OkStatus();
  return FailedPrecondition(
      fmt::format("{} holds a run already; continue it with --resume, or give another --output",
                  directory.path()));
}

}  // namespace ringtail
