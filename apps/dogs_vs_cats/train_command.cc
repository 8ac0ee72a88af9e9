// dogs_vs_cats train: a run from its first step, or from a checkpoint, to its end.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "apps/config/class_outputs.h"
#include "apps/dogs_vs_cats/command.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/dogs_vs_cats/introduction.h"
#include "apps/dogs_vs_cats/output_path.h"
#include "apps/dogs_vs_cats/progress_display.h"
#include "apps/dogs_vs_cats/resume.h"
#include "apps/dogs_vs_cats/world_flags.h"
#include "apps/exit_code.h"
#include "apps/help/program_name.h"
#include "apps/launch/resume_command.h"
#include "apps/plan/auto_plan.h"
#include "apps/plan/follow_plan.h"
#include "apps/plan/prediction_report.h"
#include "apps/plan/run_advice.h"
#include "apps/print.h"
#include "apps/report/write_report.h"
#include "apps/session/world_session.h"
#include "apps/trainer/checkpoint/config_difference.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/decide_precision.h"
#include "apps/trainer/local/round_report.h"
#include "apps/trainer/pipeline/stage_cut.h"
#include "apps/trainer/pipeline/stage_report.h"
#include "apps/trainer/save_for_rank_zero.h"
#include "apps/trainer/train_to_end.h"
#include "apps/trainer/update/bf16_agreement.h"
#include "core/check.h"
#include "core/fast_bf16_products.h"
#include "core/logging.h"
#include "core/stop_signal.h"
#include "core/stopwatch.h"
#include "data/augmentation/image_mix.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

struct TrainFlags {
  ConfigFlags config;
  WorldFlags world;
  ResumeFlags run;
  std::string data;
  std::string weights, freeze;
  std::optional<double> until_accuracy;
  bool no_report = false;
};

// As many threads as the run had so far on this rank, unless told otherwise: sums that are divided
// differently round differently.
void KeepThreads(const ResumeHead& head, const RunConfig& config, const RankIdentity& identity,
                 ConfigFlags* flags) {
  if (flags->threads != 0 || config.train().threads() != 0) return;
  flags->threads = ThreadsSoFar(head, config.dist(), identity);
}

// The same on all ranks.
int ExitCodeOf(const TrainingOutcome& outcome) {
  switch (outcome.kind) {
    case TrainingOutcome::Kind::kFinished:
    case TrainingOutcome::Kind::kReachedAccuracy:
    case TrainingOutcome::Kind::kOutOfPatience:
      return kExitSuccess;
    case TrainingOutcome::Kind::kStopped:
      return kExitSignalBase + outcome.signal;
    case TrainingOutcome::Kind::kNotFinite:
      return kExitNotFinite;
    case TrainingOutcome::Kind::kThaws:
      break;
  }
  RT_CHECK(false, "the run has not ended");
}

// `seconds`: since the program began to train. `alone`: no launcher says how to continue.
void Report(const TrainingOutcome& outcome, double seconds, const std::string& folder, bool alone) {
  switch (outcome.kind) {
    case TrainingOutcome::Kind::kFinished:
    case TrainingOutcome::Kind::kReachedAccuracy:
    case TrainingOutcome::Kind::kOutOfPatience:
    case TrainingOutcome::Kind::kThaws:
      Print("{}; {} in all\n", outcome.message, ClockText(seconds));
      if (!outcome.advice.empty()) Print("{}\n", outcome.advice);
      return;
    case TrainingOutcome::Kind::kStopped:
      LogWarning(outcome.message);
      if (alone) {
        Print("to continue: {} train --resume {}\n", ProgramName(), ShellWord(folder));
      }
      return;
    case TrainingOutcome::Kind::kNotFinite:
      return LogError(outcome.message);
  }
}

// The run is complete without it.
void ReportRun(const std::string& folder) {
  const Stopwatch watch;
  if (const Status status = WriteReportOfRun(folder); !status.ok()) {
    return LogWarning(fmt::format("there is no report, `{} report {}` writes it: {}", ProgramName(),
                                  folder, status.message()));
  }
  Print("report in {}/{} ({:.1f} s; it holds copies of some images)\n", folder, kReportName,
        watch.Seconds());
}

bool IsComplete(const TrainingOutcome& outcome) {
  return outcome.kind == TrainingOutcome::Kind::kFinished ||
         outcome.kind == TrainingOutcome::Kind::kReachedAccuracy ||
         outcome.kind == TrainingOutcome::Kind::kOutOfPatience;
}

// What this rank knows before it joins the others.
struct Job {
  std::string output;
  ComputeThreads threads;
  LoadedConfig loaded;
  std::optional<ResumeHead> head;  // none: the run begins, or this rank does not reach it
};

// Empty on the other ranks, and for a run that begins.
StatusOr<ResumePoint> PointOfRankZero(const ResumeFlags& flags, const Job& job,
                                      TrainingWorld* world) {
  if (!world->leads() || !job.head) return ResumePoint();
  const ScopedPhase reading(world->progress(), Phase::kCheckpoint);  // files of any size
  return LoadResumePoint(flags, job.output, [world] { world->progress()->Tick(); });
}

// A prediction that fails is no reason not to train.
void Advise(const Generation& generation, PredictionReport* report) {
  PredictPeriod predict;
  const auto advice = AdviseRun(generation, &predict);
  if (predict) report->Expect(std::move(predict));
  if (!advice.ok()) {
    LogWarning(fmt::format("whether several hosts are faster than one could not be predicted: {}",
                           advice.status().message()));
  } else if (*advice) {
    LogWarning(**advice);
  }
}

// The network of a run that is resumed with its own config stays as it is.
Status FitOutputs(const TrainFlags& flags, const TrainingData& data, bool tell, Job* job) {
  if (job->head && flags.config.config.empty()) return OkStatus();
  const auto& names = data.dataset->class_names();
  RT_ASSIGN_OR_RETURN(
      const std::string said,
      FitOutputsToClasses(static_cast<int>(names.size()), flags.config.set, &job->loaded.config));
  if (tell && !said.empty()) LogInfo(said);
  return OkStatus();
}

// A run that continues keeps how it began: precision, weights, the epochs of its rate. One that
// begins decides its precision.
Status FixBeginning(TrainingWorld* world, Job* job) {
  if (job->head) KeepBeginning(job->head->config, &job->loaded.config);
  return DecidePrecision(StepOfRun(job->loaded.config), world, &job->loaded);
}

StatusOr<int> TrainInWorld(const TrainFlags& flags, Job job, WorldSession* session) {
  TrainingWorld* const everyone = session->everyone();
  std::unique_ptr<RunDirectory> directory;
  if (everyone->leads()) {
    RT_ASSIGN_OR_RETURN(directory, RunDirectory::Open(job.output));
    RT_RETURN_IF_ERROR(CheckOutput(flags.run, job.head, *directory));
  }
  RT_ASSIGN_OR_RETURN(ResumePoint point, PointOfRankZero(flags.run, job, everyone));
  RT_ASSIGN_OR_RETURN(const TrainingData data,
                      TrainingData::Open(job.loaded.config.data(), everyone,
                                         everyone->leads() ? directory->BadImagesPath() : ""));
  RT_RETURN_IF_ERROR(FitOutputs(flags, data, everyone->leads(), &job));
  RT_RETURN_IF_ERROR(FixBeginning(everyone, &job));
  RT_ASSIGN_OR_RETURN(const std::optional<LoadedConfig> planned,
                      FollowPlan(job.loaded, job.head, data,
                                 /*equal_shares=*/!flags.world.balance, session));
  const LoadedConfig& loaded = planned ? *planned : job.loaded;
  if (!session->trains()) return session->EndWith(kExitSuccess);
  TrainingWorld* const world = session->world();
  const RunConfig& config = loaded.config;
  const bool resumes = !point.empty();
  const bool by_speed = flags.world.balance || PlansSharesBySpeed(config.dist());
  std::string_view start;  // the others receive rank 0's state
  if (world->leads() && !resumes) start = config.train().weights();
  ProgressDisplay progress(stdout, config.train().log_every_steps(),
                           MixesImages(config.data().augment()));
  const MeasuringShown shown(world->leads() ? &progress : nullptr);
  PredictionReport report(&progress, [&](const Metrics& line) { directory->Record(line); });
  StageReport stages(&report);
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> cut_after, DecideCut(loaded, world));
  RT_ASSIGN_OR_RETURN(const bool bf16_products,
                      AgreeOnBf16Products(FastBf16Products(), config, world));
  RT_ASSIGN_OR_RETURN(
      TrainingRun run,
      TrainingRun::Create({.loaded = &loaded,
                           .data = &data,
                           .directory = directory.get(),
                           .observer = world->leads() ? &stages : nullptr,
                           .batch = {.local = flags.world.local_batch, .by_speed = by_speed},
                           .start_weights = start,
                           .rank = world->rank(),
                           .ranks = world->size(),
                           .resumes = flags.run.resume,
                           .cut_after = cut_after,
                           .bf16_products = bf16_products}));
  const Numerics saved = point.numerics;
  const std::string from =
      fmt::format("resumes after step {} ({})", point.progress.step, point.path);
  RT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(&run, std::move(point), world));
  progress.Clear();
  if (world->leads()) {
    RT_RETURN_IF_ERROR(PrintIntroduction(trainer->generation(), job.threads.words, *session));
    if (!resumes) Advise(trainer->generation(), &report);
    RT_RETURN_IF_ERROR(stages.Watch(trainer->generation()));
  }
  if (resumes) {
    const std::string other = DescribeOtherNumerics(saved, run.numerics());
    if (!other.empty()) LogWarning(other);
    LogInfo(from);
  }
  if (world->leads()) {
    SetStopNotice("stopping " + WhenItStops(config.dist(), world->alone()) + "; again to stop now");
  }
  auto outcome = TrainToEnd(&trainer);
  SetStopNotice("");
  progress.Finish();
  if (outcome.ok()) {
    RT_ASSIGN_OR_RETURN(const int exit_code, session->EndWith(ExitCodeOf(*outcome)));
    if (!world->leads()) return exit_code;
    Report(*outcome, progress.seconds(), directory->path(), world->size() == 1);
    if (IsComplete(*outcome) && !flags.no_report) {
      trainer.reset();  // frees its net: the other ranks are gone
      ReportRun(directory->path());
    }
    return exit_code;
  }
  const bool others_lost = world->lost() && !world->cut_off();
  if (others_lost && !world->leads() && trainer != nullptr) {
    SaveForRankZero(job.output, trainer->keeper(), world->progress());
  }
  return Status(outcome.status());
}

// --resume without a checkpoint to resume.
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

// The exit code of a rank that was told to stop before it had begun, or that has lost other ranks
// that were told to stop and ended first. None: it has failed for another reason.
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
  if (!flags.weights.empty()) flags.config.SetString("train.weights", flags.weights);
  if (!flags.freeze.empty()) flags.config.set.push_back("train.freeze=" + flags.freeze);
  if (!flags.world.plan.empty()) {
    flags.config.set.push_back(flags.world.plan == "auto" ? "dist.plan=AUTO" : "dist.plan=CONFIG");
  }
  if (flags.until_accuracy) {
    flags.config.set.push_back(fmt::format("train.until_accuracy={}", *flags.until_accuracy));
  }
  RT_ASSIGN_OR_RETURN(const RankIdentity identity,
                      DetectRank(flags.world.rank, ProcessEnvironment));
  const bool leads = identity.rank == 0;
  if (leads) SetStopNotice("stopping; again to stop now");
  Job job;
  job.output = OutputFolder(flags.run, flags.config.config);
  auto head = FindResumeHead(flags.run, job.output);
  if (leads) RT_RETURN_IF_ERROR(Status(head.status()));
  // The others need config, threads and algorithms of it, if they reach it.
  if (head.ok()) job.head = *std::move(head);
  const auto config_of_run = ConfigOfRun(flags.run, job.output);
  if (leads && flags.run.resume && !job.head) {
    TellOfBeginning(flags, job.output, config_of_run);
  }
  RT_ASSIGN_OR_RETURN(job.loaded, LoadConfig(flags.config, job.head, config_of_run, leads));
  if (job.loaded.config.data().path().empty()) {
    return InvalidArgument("no images are named; give --data DIR or set data.path");
  }
  if (FollowsPlan(job.loaded.config, job.head) && flags.world.local_batch > 0) {
    return InvalidArgument(
        "a plan (--plan auto) chooses the images of each rank: leave out --local-batch, or let it "
        "be auto");
  }
  // What is wrong is said before the images are read.
  RT_RETURN_IF_ERROR(CreateModel(job.loaded, /*allocate=*/false).status());
  if (job.head) KeepThreads(*job.head, job.loaded.config, identity, &flags.config);
  RT_ASSIGN_OR_RETURN(job.threads,
                      UseThreads(flags.config, job.loaded.config, identity.local_world_size,
                                 identity.world_size > 1 ? kThreadsOfAWorld : 0));
  // Before the first step nothing depends on them, and a stop may have come while they were
  // measured.
  if (job.head && job.head->progress.step > 0) KeepAlgorithms(job.head->algorithms);

  auto joined = WorldSession::Join(flags.world.options, identity, job.loaded.config);
  if (!joined.ok()) return WorldSession::FailToJoin(joined.status());
  const auto session = *std::move(joined);
  auto exit_code = TrainInWorld(flags, std::move(job), session.get());
  if (exit_code.ok()) return exit_code;
  if (StopSignal() != 0) {
    if (const auto stopped = Stopped(exit_code.status(), session->world())) return *stopped;
  }
  if (session->everyone()->alone()) return exit_code;
  return session->Fail(exit_code.status());
}

// Empty: `text` is a fraction.
std::string FractionError(const std::string& text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value)) return text + " is no number";
  if (value >= 0 && value <= 1) return "";
  const bool percent = value > 1 && value <= 100;
  return fmt::format(
      "{} is not from 0 to 1{}", text,
      percent ? fmt::format("; {:.4g} stands for {:.4g} %", value / 100, value) : "");
}

}  // namespace

void AddTrainCommand(CLI::App* app, Command* chosen) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* verb = app->add_subcommand("train", "Train a network on images");
  AddConfigFlag(verb, &flags->config, "of a resumed run, its own; else ");
  AddSetFlag(verb, &flags->config);
  AddThreadsFlag(verb, &flags->config,
                 "of a resumed run, as many as it began with, else this rank's share of the "
                 "host's cores");
  AddWorldFlags(verb, &flags->world);
  verb->add_option(
          "--trace", flags->world.options.trace,
          "Write a timeline of all ranks, for chrome://tracing or ui.perfetto.dev; - is standard "
          "output")
      ->type_name("FILE");
  verb->add_option("--data", flags->data, "Folder, list file or packed file with the images")
      ->type_name("PATH");
  verb->add_option(
          "--weights", flags->weights,
          "Begin with the weights of a safetensors or .pth file (torchvision's, timm's), or "
          "of another run's folder; the last layer starts anew if it has other classes")
      ->type_name("FILE|RUN");
  verb->add_option("--freeze", flags->freeze,
                   "Layers that do not train: names, what names begin with (layer1,layer2), or "
                   "all-but-head (default: train.freeze)")
      ->type_name("LAYER,...");
  verb->add_option("--output", flags->run.output, "Folder of the run (default: runs/<config>)")
      ->type_name("DIR");
  CLI::Option* resume =
      verb->add_option("--resume", flags->run.from,
                       "Resume from a checkpoint or run folder (default: the newest in --output)")
          ->type_name("[PATH]")
          ->expected(0, 1);
  verb->add_option("--until-accuracy", flags->until_accuracy,
                   "Stop once validation reaches this fraction, e.g. 0.95 (default: "
                   "train.until_accuracy; 0: train to the end)")
      ->type_name("FRACTION")
      ->check(CLI::Validator(FractionError, ""));
  verb->add_flag("--no-report", flags->no_report, "Write no report.html at the end");
  verb->footer(Examples({"train --data ~/pets --output runs/first",
                         "train --data ~/pets --output runs/first --resume",
                         "train --data ~/pets --config lenet --set train.epochs=3",
                         "train --data ~/pets --config resnet18 --weights resnet18.pth --freeze "
                         "all-but-head"}));
  verb->callback([flags, resume, chosen] {
    flags->run.resume = resume->count() > 0;
    *chosen = [flags] { return RunTrain(*flags); };
  });
}

}  // namespace ringtail
