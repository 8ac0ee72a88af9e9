// A rank that trains like dogs_vs_cats --local-batch auto, with given speeds of the ranks:
//
//   apps_balanced_rank_main CONFIG OUTPUT SPEEDS STOP
//
// SPEEDS: "5,2,1", by rank. STOP: the number of steps after which all stop; 0: at the end. Resumes
// from a checkpoint in OUTPUT. Rank 0 prints the division of the batch.
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "apps/exit_code.h"
#include "apps/session/world_session.h"
#include "apps/trainer/train_to_end.h"
#include "core/parallel_for.h"
#include "core/stop_signal.h"
#include "dist/membership/identity/rank_environment.h"

namespace ringtail {
namespace {

struct StoppingRank : public TrainingObserver {
  int64_t stop = 0;
  void OnStep(const Metrics& step, const TrainingPlan& /*plan*/) override {
    if (step.step == stop) SetStopSignalForTest(SIGTERM);
  }
};

double SpeedOf(int rank, const char* speeds) {
  std::istringstream parts(speeds);
  std::string part;
  for (int i = 0; i <= rank; ++i) std::getline(parts, part, ',');
  return std::stod(part);
}

Status Train(const LoadedConfig& loaded, char** arguments, WorldSession* session) {
  TrainingWorld* const world = session->world();
  const std::string output = arguments[2];
  BatchRequest batch{.by_speed = true};
  batch.speed = [&] { return SpeedOf(world->rank(), arguments[3]); };
  ResumePoint point;
  std::unique_ptr<RunDirectory> directory;
  if (world->leads()) {
    StatusOr<Checkpoint> checkpoint = LoadNewestCheckpoint(output);
    if (checkpoint.ok()) {
      RT_ASSIGN_OR_RETURN(point, ReadResumePoint(*std::move(checkpoint)));
    }
    RT_ASSIGN_OR_RETURN(directory, RunDirectory::Open(output));
  }
  KeepAlgorithms(point.algorithms);
  RT_ASSIGN_OR_RETURN(const TrainingData data, TrainingData::Open(loaded.config.data(), world));
  StoppingRank observer;
  observer.stop = std::atoi(arguments[4]);
  RT_ASSIGN_OR_RETURN(TrainingRun run, TrainingRun::Create({.loaded = &loaded,
                                                            .data = &data,
                                                            .directory = directory.get(),
                                                            .observer = &observer,
                                                            .batch = batch}));
  RT_ASSIGN_OR_RETURN(auto trainer, Trainer::Create(&run, std::move(point), world));
  if (world->leads()) std::printf("%s\n", trainer->generation().division.summary.c_str());
  RT_RETURN_IF_ERROR(TrainToEnd(&trainer).status());
  return Status(session->EndWith(kExitSuccess).status());
}

StatusOr<int> Main(char** arguments) {
  SetNumComputeThreads(1);
  RT_ASSIGN_OR_RETURN(const LoadedConfig loaded, LoadRunConfig(arguments[1], {}));
  RT_ASSIGN_OR_RETURN(const RankIdentity identity, DetectRank({}, ProcessEnvironment));
  RT_ASSIGN_OR_RETURN(const auto session, WorldSession::Join({}, identity, loaded.config));
  const Status trained = Train(loaded, arguments, session.get());
  return trained.ok() ? kExitSuccess : session->Fail(trained);
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) {
  if (count != 5) return ringtail::kExitUsage;
  const auto exit_code = ringtail::Main(arguments);
  if (exit_code.ok()) return *exit_code;
  std::fprintf(stderr, "%s\n", exit_code.status().message().c_str());
  return ringtail::kExitFailure;
}
