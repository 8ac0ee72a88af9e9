// Emulate: a whole training run of virtual workers in this process, with real gradients and a
// virtual clock. The same config, script, images and compute threads give the same bytes, whatever
// the loader's threads.
// Thread-safety: the trainer thread. Errors: InvalidArgument from EmulatedJob::Create and where
// workers become too many for the batch; FailedPrecondition if all workers have died; Cancelled once
// a stop signal came; those of the loader. A loss that is not finite is no error: it ends the run,
// and the summary says where.
#ifndef RINGTAIL_APPS_EMULATOR_EMULATION_H_
#define RINGTAIL_APPS_EMULATOR_EMULATION_H_

#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/emulator/emulated_job.h"
#include "apps/emulator/emulation_log.h"
#include "apps/emulator/script.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/status.h"

namespace ringtail {

struct EmulationResult {
  std::string lines;  // emulation_log.h
  EmulationSummary summary;
  ComputeScript compute;       // as given, or as measured
  std::vector<float> weights;  // the arena's block, at the end: those of all workers
  PassTimes pass_times;        // real times
  RealTimes real;
  double real_s = 0;  // of all
};

// `network`: the trained network is written there, as a run's final.safetensors; empty: nowhere.
StatusOr<EmulationResult> Emulate(const LoadedConfig& loaded, const TrainingData& data,
                                  const EmulationScript& script, const std::string& network = "");

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_EMULATION_H_
