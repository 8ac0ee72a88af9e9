// dogs_vs_cats train: a run from its first step, or from a checkpoint, to its end.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/dogs_vs_cats/introduction.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/progress_display.h"
#include "apps/dogs_vs_cats/resume.h"
#include "apps/dogs_vs_cats/world_flags.h"
#include "apps/exit_code.h"
#include "apps/print.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/trainer.h"
#include "apps/world_session.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

struct TrainFlags {
  ConfigFlags config;
  WorldFlags world;
  ResumeFlags run;
  std::string data;
  std::optional<double> until_accuracy;
};

// What talks with other ranks: ours (rt-comm, rt-liveness, rt-grpc, ...), and those of gRPC, whose
// number hangs on the machine.
constexpr int kThreadsOfAWorld = 16;

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
      if (leads) Print("{}\n", outcome.message);
      if (leads && !outcome.advice.empty()) Print("{}\n", outcome.advice);
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
  std::string output;
  ComputeThreads threads;
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
    RT_RETURN_IF_ERROR(CheckOutput(flags.run, run->checkpoint, *run->directory));
  }
  RT_ASSIGN_OR_RETURN(const TrainingData data,
                      TrainingData::Open(config.data(), world,
                                         world->leads() ? run->directory->BadImagesPath() : ""));
  BatchRequest batch{.local = flags.world.local_batch, .by_speed = flags.world.balance};
  if (run->checkpoint) {
    RT_ASSIGN_OR_RETURN(batch.saved, ReadDivision(*run->checkpoint));
  }
  ProgressDisplay progress(stdout, config.train().log_every_steps());
  RT_ASSIGN_OR_RETURN(const auto trainer,
                      Trainer::Create(run->loaded, &data, run->directory.get(),
                                      world->leads() ? &progress : nullptr, world, batch));
  if (world->leads()) {
    RT_RETURN_IF_ERROR(
        PrintIntroduction(run->loaded, run->threads.words, data, *trainer, *session));
  }
  if (run->checkpoint) {
    RT_RETURN_IF_ERROR(trainer->Resume(*run->checkpoint));
    WarnOfOtherNumerics(*run->checkpoint);
    LogInfo(
        fmt::format("goes on after step {} ({})", run->checkpoint->step, run->checkpoint->path));
    run->checkpoint.reset();  // its tensors are the trainer's by now
  }
  if (world->leads()) SetStopNotice("stopping after this step; again to stop now");
  auto outcome = trainer->Run();
  SetStopNotice("");
  progress.Finish();
  if (outcome.ok()) RT_RETURN_IF_ERROR(session->Leave());
  if (!outcome.ok() && world->lost() && !world->cut_off() && !world->leads()) {
    SaveForRankZero(*run, trainer.get());
  }
  RT_RETURN_IF_ERROR(Status(outcome.status()));
  return Report(*outcome, world->leads());
}

// --resume where there is nothing to resume.
void TellOfBeginning(const TrainFlags& flags, const std::string& output,
                     const std::optional<std::string>& config_of_run) {
  std::string config;
  if (config_of_run && flags.config.config.empty()) {
    config = fmt::format(", with {}", *config_of_run);
  } else if (config_of_run) {
    config = fmt::format(", with {} and not with the {} that is there", flags.config.config,
                         kConfigName);
  }
  LogInfo(fmt::format("no checkpoint in {} yet: the run begins{}", output, config));
}

// The exit code of a rank that was told to stop and so has not begun, or that has lost others, which
// were told the same and were quicker. None: it has failed otherwise.
std::optional<int> Stopped(const Status& why, TrainingWorld* world) {
  const bool told = why.code() == StatusCode::kCancelled;
  if (!told && (!world->lost() || world->cut_off())) return std::nullopt;
  world->Abort(why);
  LogWarning(told ? "stopped by a signal before the first step" : why.message());
  return kExitSignalBase + StopSignal();
}

StatusOr<int> RunTrain(TrainFlags flags) {
  ReceiveStopSignals();
  RT_ASSIGN_OR_RETURN(flags.world.options.trace, OutputPath(flags.world.options.trace));
  if (!flags.data.empty()) flags.config.SetString("data.path", flags.data);
  if (flags.until_accuracy) {
    flags.config.set.push_back(fmt::format("train.until_accuracy={}", *flags.until_accuracy));
  }
  RT_ASSIGN_OR_RETURN(const RankIdentity identity,
                      DetectRank(flags.world.rank, ProcessEnvironment));
  const bool leads = identity.rank == 0;
  if (leads) SetStopNotice("stopping; again to stop now");
  Run run;
  run.output = OutputFolder(flags.run, flags.config.config);
  auto checkpoint =
      FindCheckpoint(flags.run, run.output, leads ? CheckParts::kYes : CheckParts::kNo);
  if (leads) RT_RETURN_IF_ERROR(Status(checkpoint.status()));
  // The others need of it no more than the config, if they reach it.
  if (checkpoint.ok()) run.checkpoint = *std::move(checkpoint);
  const auto config_of_run = ConfigOfRun(flags.run, run.output);
  if (leads && flags.run.resume && !run.checkpoint) {
    TellOfBeginning(flags, run.output, config_of_run);
  }
  RT_ASSIGN_OR_RETURN(run.loaded, LoadConfig(flags.config, run.checkpoint, config_of_run));
  if (run.loaded.config.data().path().empty()) {
    return InvalidArgument("no images are named; give --data DIR or set data.path");
  }
  // What is wrong is said before the images are read.
  RT_RETURN_IF_ERROR(CreateModel(run.loaded, /*allocate=*/false).status());
  if (run.checkpoint) KeepNumerics(*run.checkpoint, run.loaded.config, identity, &flags.config);
  RT_ASSIGN_OR_RETURN(run.threads,
                      UseThreads(flags.config, run.loaded.config, identity.local_world_size,
                                 identity.world_size > 1 ? kThreadsOfAWorld : 0));
  // Before the first step nothing depends on them, and a stop may have come while they were measured.
  if (run.checkpoint && run.checkpoint->step > 0) KeepAlgorithms(run.checkpoint->file.metadata());
  if (!leads) run.checkpoint.reset();

  auto joined = WorldSession::Join(flags.world.options, identity, run.loaded.config);
  if (!joined.ok()) return WorldSession::FailToJoin(joined.status());
  const auto session = *std::move(joined);
  auto exit_code = TrainInWorld(flags, &run, session.get());
  if (exit_code.ok()) return exit_code;
  if (StopSignal() != 0) {
    if (const auto stopped = Stopped(exit_code.status(), session->world())) return *stopped;
  }
  if (session->world()->alone()) return exit_code;
  return session->Fail(exit_code.status());
}

}  // namespace

void AddTrainCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app->add_subcommand("train", "Train a network on images");
  AddConfigFlag(verb, &flags->config, "when a run goes on, its own; else ");
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config,
                 "when a run goes on, as many as it began with, else this rank's share of the "
                 "host's cores");
  AddWorldFlags(verb, &flags->world);
  verb->add_option(
          "--trace", flags->world.options.trace,
          "Write a timeline of all ranks, for chrome://tracing or ui.perfetto.dev; - is standard "
          "output")
      ->type_name("FILE");
  verb->add_option("--data", flags->data, "Folder, list file or packed file with the images")
      ->type_name("PATH");
  verb->add_option("--output", flags->run.output, "Folder of the run (default: runs/<config>)")
      ->type_name("DIR");
  CLI::Option* resume =
      verb->add_option("--resume", flags->run.from,
                       "Go on from a checkpoint or run folder (default: the newest in --output)")
          ->type_name("[PATH]")
          ->expected(0, 1);
  verb->add_option("--until-accuracy", flags->until_accuracy,
                   "Stop once validation reaches this fraction, e.g. 0.95 (default: "
                   "train.until_accuracy; 0: train to the end)")
      ->check(CLI::Range(0.0, 1.0));
  verb->callback([flags, resume, chosen] {
    flags->run.resume = resume->count() > 0;
    *chosen = [flags] { return RunTrain(*flags); };
  });
}

}  // namespace ringtail
