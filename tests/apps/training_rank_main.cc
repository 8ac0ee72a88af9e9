// A rank that trains like dogs_vs_cats until a given fault:
//
//   apps_training_rank_main CONFIG OUTPUT FAULT RANK STEP [CHECKPOINT]
//
// Resumes from CHECKPOINT, a file or the folder of a run, if given. FAULT of rank RANK after step
// STEP: kill, segv, abort, exit0, throw (it ends in this way); stop (SIGSTOP); hang (its training
// thread); slow (sleeps in every later step); kill_among_slow (kill, and the others sleep for longer
// in every later step); flip, flip_momentum, flip_average (flips one bit of a
// weight, of the optimizer's state, of the averaged weights; only when the step is done for the
// first time), flip_again (each time); nan (sets a weight to NaN); pid (prints its process id and
// continues); stop_others (stop for all ranks except RANK); flip_moved (flip, and renames OUTPUT to
// OUTPUT.moved); none.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "apps/exit_code.h"
#include "apps/session/world_session.h"
#include "apps/trainer/train_to_end.h"
#include "core/parallel_for.h"
#include "core/stop_signal.h"
#include "dist/membership/identity/rank_environment.h"

namespace ringtail {
namespace {

struct FaultyRank : public TrainingObserver {
  std::string fault;
  int64_t at_step = 0;
  std::chrono::milliseconds pause{100};  // of slow
  bool failed = false;
  float* weight = nullptr;
  float* flipped = nullptr;  // the value that flip* changes
  std::string output;

  void OnStep(const Metrics& step, const TrainingPlan& /*plan*/) override {
    if (fault == "slow" && step.step >= at_step) return Sleep(pause);
    // With servers steps are those of all ranks, and some have no line.
    const bool update = step.kind == Metrics::Kind::kUpdate;
    if (update ? step.step >= at_step && !std::exchange(failed, true) : step.step == at_step) {
      Fail();
    }
  }

  static void Sleep(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

  void Fail() {
    if (fault == "pid") std::printf("pid %d\n", getpid()), std::fflush(stdout);
    if (fault.starts_with("kill")) raise(SIGKILL);
    if (fault == "segv") raise(SIGSEGV);
    if (fault == "abort") std::abort();
    if (fault == "exit0") _exit(0);
    if (fault == "throw") throw std::runtime_error("a fault");
    if (fault == "stop") raise(SIGSTOP);
    if (fault == "hang") Sleep(std::chrono::hours(1));
    if (fault == "nan") *weight = std::numeric_limits<float>::quiet_NaN();
    if (fault.starts_with("flip")) {
      uint32_t bits = 0;
      std::memcpy(&bits, flipped, sizeof(bits));
      bits ^= 1U << 12;
      std::memcpy(flipped, &bits, sizeof(bits));
      if (fault == "flip_moved") std::filesystem::rename(output, output + ".moved");
      if (fault != "flip_again") fault = "none";
    }
  }
};

StatusOr<int> Train(const LoadedConfig& loaded, const std::string& output, const std::string& from,
                    WorldSession* session, FaultyRank* fault) {
  TrainingWorld* const world = session->world();
  std::unique_ptr<RunDirectory> directory;
  if (world->leads()) {
    RT_ASSIGN_OR_RETURN(directory, RunDirectory::Open(output));
  }
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded.config.data(), world));
  RT_ASSIGN_OR_RETURN(TrainingRun run, TrainingRun::Create({.loaded = &loaded,
                                                            .data = &data,
                                                            .directory = directory.get(),
                                                            .observer = fault,
                                                            .rank = world->rank(),
                                                            .ranks = world->size()}));
  ResumePoint point;
  if (world->leads() && !from.empty()) {
    RT_ASSIGN_OR_RETURN(Checkpoint checkpoint, std::filesystem::is_directory(from)
                                                   ? LoadNewestCheckpoint(from)
                                                   : LoadCheckpoint(from));
    RT_ASSIGN_OR_RETURN(point, ReadResumePoint(std::move(checkpoint)));
  }
  RT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(&run, std::move(point), world));
  const TrainingState& state = run.state;
  fault->weight = fault->flipped = state.model()->arena().values().data();
  if (fault->fault == "flip_momentum") fault->flipped = state.optimizer()->state()[0].values.data();
  if (fault->fault == "flip_average") fault->flipped = state.average()->values().data();
  RT_ASSIGN_OR_RETURN(const TrainingOutcome outcome, TrainToEnd(&trainer));
  RT_RETURN_IF_ERROR(Status(session->EndWith(kExitSuccess).status()));
  std::printf("%s\n", outcome.message.c_str());
  return outcome.kind == TrainingOutcome::Kind::kNotFinite ? kExitNotFinite : kExitSuccess;
}

StatusOr<int> Main(char** arguments) {
  SetNumComputeThreads(1);
  RT_ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadRunConfig(arguments[1], {}));
  RT_ASSIGN_OR_RETURN(const RankIdentity identity, DetectRank({}, ProcessEnvironment));
  RT_ASSIGN_OR_RETURN(const auto session, WorldSession::Join({}, identity, loaded.config));
  FaultyRank fault;
  if (identity.rank == std::atoi(arguments[4]))
    fault.fault = arguments[3];
  else if (std::string(arguments[3]) == "stop_others")
    fault.fault = "stop";
  else if (std::string(arguments[3]) == "kill_among_slow")
    fault.fault = "slow", fault.pause = std::chrono::milliseconds(300);
  fault.at_step = std::atoi(arguments[5]);
  fault.output = arguments[2];
  const std::string from = arguments[6] != nullptr ? arguments[6] : "";
  const auto exit_code = Train(loaded, arguments[2], from, session.get(), &fault);
  return exit_code.ok() ? exit_code : session->Fail(exit_code.status());
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  if (count != 6 && count != 7) return ringtail::kExitUsage;
  const auto exit_code = ringtail::Main(arguments);
  if (exit_code.ok()) return *exit_code;
  std::fprintf(stderr, "%s\n", exit_code.status().message().c_str());
  return ringtail::kExitFailure;
}
