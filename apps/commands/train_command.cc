// dogs_vs_cats train: a run from its first step, or from a checkpoint, to its end.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "apps/commands/command.h"
#include "apps/commands/config_flags.h"
#include "apps/commands/world_flags.h"
#include "apps/exit_code.h"
#include "apps/progress_display.h"
#include "apps/stop_signal.h"
#include "apps/trainer/model_file.h"
#include "apps/trainer/numerics.h"
#include "apps/trainer/trainer.h"
#include "apps/version.h"
#include "apps/world_session.h"
#include "core/logging.h"
#include "layers/net.h"
#include "optim/batch_growth.h"
#include "optim/schedule.h"

namespace ringtail {
namespace {

struct TrainFlags {
  ConfigFlags config;
  WorldFlags world;
  std::string data, output, resume_from;
  std::optional<double> until_accuracy;
  bool resume = false;
};

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// --resume without --output goes on in the run it names, by its folder or one of its checkpoints; a
// new run is called after its config.
std::string OutputFolder(const TrainFlags& flags) {
  if (!flags.output.empty()) return flags.output;
  if (IsFolder(flags.resume_from)) return flags.resume_from;
  const std::filesystem::path folder = std::filesystem::path(flags.resume_from).parent_path();
  if (folder.filename() == kCheckpointFolder) {
    return folder.has_parent_path() ? folder.parent_path().string() : ".";
  }
  const std::string name = std::filesystem::path(flags.config.config).stem().string();
  return "runs/" + (name.empty() ? "dogs_vs_cats" : name);
}

// The checkpoint to go on from: none for a new run, and for --resume where none was written yet, so
// that a scheduler can start and restart a job with one command.
StatusOr<std::optional<Checkpoint>> FindCheckpoint(const TrainFlags& flags,
                                                   const std::string& output) {
  if (!flags.resume) return std::optional<Checkpoint>();
  const bool named = !flags.resume_from.empty();
  auto checkpoint = named && !IsFolder(flags.resume_from)
                        ? LoadCheckpoint(flags.resume_from)
                        : LoadNewestCheckpoint(named ? flags.resume_from : output);
  if (checkpoint.ok()) return std::optional<Checkpoint>(*std::move(checkpoint));
  if (named || checkpoint.status().code() != StatusCode::kNotFound) return checkpoint.status();
  LogInfo(fmt::format("no checkpoint in {} yet: the run begins", output));
  return std::optional<Checkpoint>();
}

// --config; else, when resuming, the config of the run; else the one that is built in.
StatusOr<LoadedConfig> LoadConfig(const TrainFlags& flags,
                                  const std::optional<Checkpoint>& checkpoint) {
  if (!flags.config.config.empty() || !checkpoint) {
    return LoadRunConfig(flags.config.config, flags.config.set);
  }
  const auto text = checkpoint->file.metadata().find(kConfigKey);
  if (text == checkpoint->file.metadata().end()) {
    return DataLoss(checkpoint->path + ": the config is missing; this is no checkpoint of `train`");
  }
  return ParseRunConfig(text->second, checkpoint->path, flags.config.set);
}

bool IsIn(const std::string& file, const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::path(file).parent_path(), folder, ignored);
}

// Another run is never written over: neither by a new one nor by one that goes on from elsewhere.
Status CheckOutput(const TrainFlags& flags, const std::optional<Checkpoint>& checkpoint,
                   const RunDirectory& directory) {
  if (!directory.HasCheckpoints()) return OkStatus();
  const std::string checkpoints = directory.path() + "/" + kCheckpointFolder;
  if (checkpoint && IsIn(checkpoint->path, checkpoints)) return OkStatus();
  if (checkpoint) {
    return FailedPrecondition(fmt::format("{} holds another run than {}; give another --output",
                                          directory.path(), checkpoint->path));
  }
  if (flags.resume) return OkStatus();
  return FailedPrecondition(
      fmt::format("{} holds a run already; go on with it by --resume, or give another --output",
                  directory.path()));
}

// FLOPs of one picture, forward and backward, at the size that training begins with.
StatusOr<double> FlopsPerPicture(const LoadedConfig& loaded, Model* model) {
  RT_ASSIGN_OR_RETURN(const auto net,
                      Net::Create(model, {.batch = 1,
                                          .image_size = TrainingImageSizes(loaded.config).front(),
                                          .training = false,  // takes no memory for gradients
                                          .measure = false}));
  double flops = 0;
  for (const LayerInfo& layer : net->layers()) flops += layer.forward_flops + layer.backward_flops;
  return flops;
}

Status PrintIntroduction(const LoadedConfig& loaded, const std::string& threads,
                         const TrainingData& data, const Trainer& trainer,
                         const WorldSession& session) {
  constexpr double kMega = 1e6;
  Model* model = trainer.state().model();
  RT_ASSIGN_OR_RETURN(const double flops, FlopsPerPicture(loaded, model));
  fmt::print("{}; {}\n", VersionLine(), threads);
  if (!session.world().alone()) {
    fmt::print("{}; batch {} in all\n", session.Describe(model->arena().grads().size_bytes()),
               trainer.division().own.global_batch);
  }
  fmt::print("{}; {}\n", data.dataset->Describe(), data.Counts());
  fmt::print("{}: {} parameters, {:.0f} MFLOP per picture of {} pixels; {}, {}; {} steps\n",
             loaded.config.net().name(), model->arena().num_parameters(), flops / kMega,
             TrainingImageSizes(loaded.config).front(), trainer.state().optimizer()->Describe(),
             DescribeSchedule(trainer.optim().config), trainer.plan().total_steps());
  if (!trainer.division().summary.empty()) fmt::print("{}\n", trainer.division().summary);
  if (!trainer.optim().summary.empty()) fmt::print("{}\n", trainer.optim().summary);
  for (const std::string& warning : trainer.optim().warnings) LogWarning(warning);
  const TrainingPlan& plan = trainer.plan();
  const GrowthReport growth =
      ReportGrowth(trainer.optim().config, plan.growth_run(), plan.stages(), plan.total_steps());
  if (!growth.summary.empty()) fmt::print("{}\n", growth.summary);
  for (const std::string& warning : growth.warnings) LogWarning(warning);
  for (const BadPicture& bad : data.bad) {
    LogWarning(fmt::format("left out: {}: {}", bad.key, bad.reason));
  }
  std::fflush(stdout);
  return OkStatus();
}

// As many threads as the run began with on this rank, unless told otherwise: sums that are divided
// otherwise round otherwise. In another world, as many as rank 0 had.
void KeepNumerics(const Checkpoint& checkpoint, const RunConfig& config,
                  const RankIdentity& identity, ConfigFlags* flags) {
  int threads = ReadNumerics(checkpoint.file.metadata()).threads;
  const auto saved = ReadDivision(checkpoint);
  if (saved.ok() && saved->threads.size() == static_cast<size_t>(identity.world_size)) {
    threads = static_cast<int>(saved->threads[identity.rank]);
  }
  if (flags->threads == 0 && config.train().threads() == 0) flags->threads = threads;
}

void WarnOfOtherNumerics(const Checkpoint& checkpoint) {
  const Numerics saved = ReadNumerics(checkpoint.file.metadata()), now = CurrentNumerics();
  if (saved.threads == 0 || saved == now) return;
  LogWarning(
      fmt::format("the run began with {}; with {} it goes on just as well, but not to the "
                  "same bits",
                  saved.Describe(), now.Describe()));
}

// One rank talks to people; the exit code is the same on all.
int Report(const TrainingOutcome& outcome, bool leads) {
  switch (outcome.kind) {
    case TrainingOutcome::Kind::kFinished:
    case TrainingOutcome::Kind::kReachedAccuracy:
      if (leads) fmt::print("{}\n", outcome.message);
      if (leads && !outcome.advice.empty()) fmt::print("{}\n", outcome.advice);
      return kExitSuccess;
    case TrainingOutcome::Kind::kStopped:
      if (leads) LogWarning(outcome.message);
      return kExitSignalBase + outcome.signal;
    case TrainingOutcome::Kind::kNotFinite:
      if (leads) LogError(outcome.message);
      return kExitNotFinite;
  }
  return kExitFailure;
}

// Everything that a run has on this rank once its config is known.
struct Run {
  std::string output, threads;
  LoadedConfig loaded;
  std::optional<Checkpoint> checkpoint;     // rank 0
  std::unique_ptr<RunDirectory> directory;  // rank 0
};

// If rank 0 is the one that is gone, another one that reaches the folder of the run writes what all
// of them hold.
void SaveForRankZero(const Run& run, Trainer* trainer) {
  if (!IsFolder(run.output)) return;
  const auto directory = RunDirectory::Open(run.output);
  if (directory.ok()) trainer->SaveInto(directory->get());
}

StatusOr<int> TrainInWorld(const TrainFlags& flags, Run* run, WorldSession* session) {
  TrainingWorld* const world = session->world();
  const RunConfig& config = run->loaded.config;
  if (world->leads()) {
    RT_ASSIGN_OR_RETURN(run->directory, RunDirectory::Open(run->output));
    RT_RETURN_IF_ERROR(CheckOutput(flags, run->checkpoint, *run->directory));
  }
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(config.data(), world));
  BatchRequest batch{.local = flags.world.local_batch, .by_speed = flags.world.balance};
  if (run->checkpoint) {
    RT_ASSIGN_OR_RETURN(batch.saved, ReadDivision(*run->checkpoint));
  }
  ProgressDisplay progress(stdout, config.train().log_every_steps());
  RT_ASSIGN_OR_RETURN(const auto trainer,
                      Trainer::Create(run->loaded, &data, run->directory.get(),
                                      world->leads() ? &progress : nullptr, world, batch));
  if (world->leads()) {
    RT_RETURN_IF_ERROR(PrintIntroduction(run->loaded, run->threads, data, *trainer, *session));
  }
  if (run->checkpoint) {
    RT_RETURN_IF_ERROR(trainer->Resume(*run->checkpoint));
    WarnOfOtherNumerics(*run->checkpoint);
    LogInfo(
        fmt::format("goes on after step {} ({})", run->checkpoint->step, run->checkpoint->path));
  }
  auto outcome = trainer->Run();
  progress.Finish();
  if (outcome.ok()) RT_RETURN_IF_ERROR(session->Leave());
  if (!outcome.ok() && world->lost() && !world->cut_off() && !world->leads()) {
    SaveForRankZero(*run, trainer.get());
  }
  RT_RETURN_IF_ERROR(Status(outcome.status()));
  return Report(*outcome, world->leads());
}

StatusOr<int> RunTrain(TrainFlags flags) {
  InstallStopSignals();
  if (!flags.data.empty()) flags.config.SetString("data.path", flags.data);
  if (flags.until_accuracy) {
    flags.config.set.push_back(fmt::format("train.until_accuracy={}", *flags.until_accuracy));
  }
  RT_ASSIGN_OR_RETURN(const RankIdentity identity,
                      DetectRank(flags.world.rank, ProcessEnvironment));
  Run run;
  run.output = OutputFolder(flags);
  auto checkpoint = FindCheckpoint(flags, run.output);
  const bool leads = identity.rank == 0;
  if (leads) RT_RETURN_IF_ERROR(Status(checkpoint.status()));
  // The others need of it no more than the config, if they reach it.
  if (checkpoint.ok()) run.checkpoint = *std::move(checkpoint);
  RT_ASSIGN_OR_RETURN(run.loaded, LoadConfig(flags, run.checkpoint));
  if (run.loaded.config.data().path().empty()) {
    return InvalidArgument("no pictures are named; give --data DIR or set data.path");
  }
  // What is wrong is said before the pictures are read.
  RT_RETURN_IF_ERROR(CreateModel(run.loaded).status());
  if (run.checkpoint) KeepNumerics(*run.checkpoint, run.loaded.config, identity, &flags.config);
  run.threads = UseThreads(flags.config, run.loaded.config, identity.local_world_size);
  if (run.checkpoint) KeepAlgorithms(run.checkpoint->file.metadata());
  if (!leads) run.checkpoint.reset();

  RT_ASSIGN_OR_RETURN(const auto session,
                      WorldSession::Join(flags.world.options, identity, run.loaded.config));
  auto exit_code = TrainInWorld(flags, &run, session.get());
  if (exit_code.ok()) return exit_code;
  if (StopSignal() != 0 && exit_code.status().code() == StatusCode::kCancelled) {
    session->world()->Abort(exit_code.status());
    LogWarning("stopped by a signal before the first step");
    return kExitSignalBase + StopSignal();
  }
  if (session->world()->alone()) return exit_code;
  return session->Fail(exit_code.status());
}

}  // namespace

void AddTrainCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app->add_subcommand("train", "Train a network on pictures");
  AddConfigFlag(verb, &flags->config, "when a run goes on, its own; else ");
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config,
                 "when a run goes on, as many as it began with, else this rank's share of the "
                 "host's cores");
  AddWorldFlags(verb, &flags->world);
  verb->add_option("--trace", flags->world.options.trace,
                   "Write a timeline of all ranks, for chrome://tracing or ui.perfetto.dev")
      ->type_name("FILE");
  verb->add_option("--data", flags->data, "Folder, list file or packed file with the pictures")
      ->type_name("PATH");
  verb->add_option("--output", flags->output, "Folder of the run (default: runs/<config>)")
      ->type_name("DIR");
  CLI::Option* resume =
      verb->add_option("--resume", flags->resume_from,
                       "Go on from a checkpoint or run folder (default: the newest in --output)")
          ->type_name("[PATH]")
          ->expected(0, 1);
  verb->add_option("--until-accuracy", flags->until_accuracy,
                   "Stop once validation reaches this fraction, e.g. 0.95 (default: "
                   "train.until_accuracy; 0: train to the end)")
      ->check(CLI::Range(0.0, 1.0));
  verb->callback([flags, resume, chosen] {
    flags->resume = resume->count() > 0;
    *chosen = [flags] { return RunTrain(*flags); };
  });
}

}  // namespace ringtail
