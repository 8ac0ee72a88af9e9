#include "apps/trainer/train_to_end.h"

#include <fmt/core.h>

#include <filesystem>
#include <string>
#include <utility>

#include "core/logging.h"

namespace ringtail {
namespace {

// On rank 0.
StatusOr<ResumePoint> LastAgreedPoint(const Generation& generation,
                                      const std::string& agreed_path) {
  RunDirectory* const directory = generation.run->options.directory;
  if (directory == nullptr) return NotFound("this run has no folder");
  const auto tick = [progress = generation.world->progress()] { progress->Tick(); };
  if (!agreed_path.empty()) {
    RT_RETURN_IF_ERROR(directory->Folder().status());  // follows a folder that was renamed
    const std::filesystem::path folder = directory->checkpoints().folder();
    RT_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                        LoadCheckpoint(folder / agreed_path, CheckParts::kYes, tick));
    return ReadResumePoint(std::move(checkpoint));
  }
  // A run that continues from what was written after a loss has no agreed checkpoint of its own
  // yet: then an older one, but none of another course that went further.
  auto newest = LoadNewestCheckpoint(directory->path(), CheckParts::kYes, tick);
  if (newest.ok() && newest->agreed_ranks() >= 1 && newest->step <= generation.step()) {
    return ReadResumePoint(*std::move(newest));
  }
  return NotFound("there is no checkpoint yet that all agreed on");
}

// Replaces the trainer by that of the next generation. Returns `cause`, with the reason, where that
// cannot be.
Status GoBack(const Status& cause, std::unique_ptr<Trainer>* trainer) {
  const Generation& generation = (*trainer)->generation();
  const StateAgreement& agreement = (*trainer)->keeper()->agreement();
  // Of a pipeline, ranks with other layers do not know which state was wrong.
  const bool may = generation.config().dist().on_disagreement() == DistConfig::GO_ON &&
                   generation.link == nullptr;
  if (!may || !agreement.can_go_back()) return cause;
  TrainingRun* const run = generation.run;
  TrainingWorld* const world = generation.world;
  const ScopedPhase reading(world->progress(), Phase::kCheckpoint);  // files of any size
  StatusOr<ResumePoint> point = ResumePoint();
  if (world->leads()) point = LastAgreedPoint(generation, (*trainer)->keeper()->agreed_path());
  RT_ASSIGN_OR_RETURN(const std::string error, world->ShareText(point.status().message()));
  if (!error.empty()) return cause.Annotate(error);
  if (world->leads()) {
    LogWarning(fmt::format(
        "after step {} {}: a fault of its memory, or results that depend on the machine; all ranks "
        "go back to step {}, the last that they agreed on, and repeat the steps since "
        "(a second time ends the run)",
        generation.step(), agreement.finding(), point->progress.step));
  }
  point->division = generation.division.all;
  world->Blame(TrainingWorld::Culprit::kNone);
  trainer->reset();  // frees its net before the next one takes its memory
  auto next = Trainer::Create(run, *std::move(point), world);
  if (!next.ok()) return cause.Annotate(next.status().message());
  *trainer = *std::move(next);
  return OkStatus();
}

// Replaces the trainer by that of the generation in which all layers train.
Status Thaw(std::unique_ptr<Trainer>* trainer) {
  const Generation& generation = (*trainer)->generation();
  TrainingRun* const run = generation.run;
  TrainingWorld* const world = generation.world;
  const int64_t thaw_step = generation.plan.thaw_step();
  ResumePoint point;
  point.in_memory = (*trainer)->HandOverInMemory();
  point.progress = generation.progress();
  point.division = generation.division.all;
  point.allreduces = world->SelectedAllreduces();
  if (world->leads()) {
    LogInfo(fmt::format("from step {} on all layers train", generation.step() + 1));
  }
  trainer->reset();  // frees its net before the next one takes its memory
  RT_RETURN_IF_ERROR(run->Freeze(false, thaw_step));
  RT_ASSIGN_OR_RETURN(*trainer, Trainer::Create(run, std::move(point), world));
  return OkStatus();
}

// What Train says, through the generations of what is frozen and what is not.
StatusOr<TrainingOutcome> TrainGenerations(std::unique_ptr<Trainer>* trainer) {
  auto outcome = (*trainer)->Train();
  while (outcome.ok() && outcome->kind == TrainingOutcome::Kind::kThaws) {
    RT_RETURN_IF_ERROR(Thaw(trainer));
    outcome = (*trainer)->Train();
  }
  return outcome;
}

}  // namespace

StatusOr<TrainingOutcome> TrainToEnd(std::unique_ptr<Trainer>* trainer) {
  TrainingWorld* const world = (*trainer)->generation().world;
  auto outcome = TrainGenerations(trainer);
  Status failure = outcome.status();
  while (!outcome.ok() && *trainer != nullptr && (*trainer)->keeper()->agreement().failed()) {
    failure = GoBack(outcome.status(), trainer);
    if (!failure.ok()) break;
    outcome = TrainGenerations(trainer);
    failure = outcome.status();
  }
  if (failure.ok()) return outcome;
  world->Abort(failure);
  if (*trainer != nullptr && !world->cut_off()) (*trainer)->keeper()->SaveAfterFailure(failure);
  return failure;
}

}  // namespace ringtail
