// Where the folder of a run is, and what it continues from: --output, --resume, --config.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_RESUME_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_RESUME_H_

#include <functional>
#include <optional>
#include <string>

#include "apps/config/run_config.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/checkpoint/run_directory.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"
#include "dist/dist.pb.h"
#include "dist/membership/identity/rank_identity.h"

namespace ringtail {

struct ResumeFlags {
  std::string output;   // empty: OutputFolder finds one
  bool resume = false;  // --resume was given,
  std::string from;     // with this; empty: the newest in the output folder
};

// --resume without --output continues in the run it names, by its folder or one of its checkpoints;
// a new run is called after its `config` (a name or path; empty: the default).
std::string OutputFolder(const ResumeFlags& flags, const std::string& config);

// What the run continues from, without its tensors: quick, for ranks that have to join the others
// first, since these wait no longer than dist.join_timeout_s. None for a new run, and for --resume
// where no checkpoint was written yet, so that a scheduler can start and restart a job with one
// command.
StatusOr<std::optional<ResumeHead>> FindResumeHead(const ResumeFlags& flags,
                                                   const std::string& output);

// On rank 0, once the world stands: all of it, proven, with every part. An older checkpoint than
// FindResumeHead's if tensors or parts of that are damaged: config, threads and algorithms are then
// still those of the newest. `on_piece` is called after each MiB of a part.
StatusOr<ResumePoint> LoadResumePoint(const ResumeFlags& flags, const std::string& output,
                                      const std::function<void()>& on_piece = {});

// With --resume: the path of the config that the run has left in its folder, if there is one.
std::optional<std::string> ConfigOfRun(const ResumeFlags& flags, const std::string& output);

// --config; else, when resuming, the config of the run (in its checkpoint, or in its folder); else
// the default one. What a run has trained with that no plan chooses (its own local steps, for example)
// stays, though dist.plan says AUTO: then that is CONFIG again, and the rank that `tells` says so.
StatusOr<LoadedConfig> LoadConfig(const ConfigFlags& flags, const std::optional<ResumeHead>& head,
                                  const std::optional<std::string>& config_of_run, bool tells);

// Compute threads of this rank before the run was interrupted; of a rank that did not train then, and of
// all in a world of another size, those of rank 0. `config`: of the run as it continues.
int ThreadsSoFar(const ResumeHead& head, const DistConfig& config, const RankIdentity& identity);

// FailedPrecondition if the folder holds another run: it is never overwritten, neither by a new run
// nor by one that continues from elsewhere.
Status CheckOutput(const ResumeFlags& flags, const std::optional<ResumeHead>& head,
                   const RunDirectory& directory);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_RESUME_H_
