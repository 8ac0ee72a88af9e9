// Where the folder of a run is, and what it continues from: --output, --resume, --config.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_RESUME_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_RESUME_H_

#include <optional>
#include <string>

#include "apps/config/run_config.h"
#include "apps/dogs_vs_cats/config_flags.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/checkpoint/run_directory.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"

namespace ringtail {

struct ResumeFlags {
  std::string output;   // empty: OutputFolder finds one
  bool resume = false;  // --resume was given,
  std::string from;     // with this; empty: the newest in the output folder
};

// --resume without --output continues in the run it names, by its folder or one of its checkpoints;
// a new run is called after its `config` (a path; empty: the one that is built in).
std::string OutputFolder(const ResumeFlags& flags, const std::string& config);

// Empty for a new run, and for --resume where no checkpoint was written yet, so that a scheduler
// can start and restart a job with one command. `parts`: rank 0 proves them.
StatusOr<ResumePoint> FindResumePoint(const ResumeFlags& flags, const std::string& output,
                                      CheckParts parts);

// With --resume: the path of the config that the run has left in its folder, if there is one.
std::optional<std::string> ConfigOfRun(const ResumeFlags& flags, const std::string& output);

// --config; else, when resuming, the config of the run (in its checkpoint, or in its folder); else
// the built-in one.
StatusOr<LoadedConfig> LoadConfig(const ConfigFlags& flags, const ResumePoint& point,
                                  const std::optional<std::string>& config_of_run);

// FailedPrecondition if the folder holds another run: it is never overwritten, neither by a new run
// nor by one that continues from elsewhere.
Status CheckOutput(const ResumeFlags& flags, const ResumePoint& point,
                   const RunDirectory& directory);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_RESUME_H_
