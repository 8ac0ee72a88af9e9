// Emulation: a whole training run of virtual workers in this process, with real gradients and a
// virtual clock. The same config, script, images and compute threads give the same bytes, whatever
// the loader's threads.
//
//   Create      checks, and measures what the script leaves out
//   Run         to the end, or to the first error; what has been written until then stays
//   Result, WriteNetwork
//
// Thread-safety: the trainer thread. A loss that is not finite is no error: it ends the run, and the
// summary says where.
#ifndef RINGTAIL_APPS_EMULATOR_EMULATION_H_
#define RINGTAIL_APPS_EMULATOR_EMULATION_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/emulator/emulated_job.h"
#include "apps/emulator/emulation_log.h"
#include "apps/emulator/rules/emulated_rule.h"
#include "apps/emulator/script.h"
#include "apps/trainer/training_data.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/status.h"
#include "core/stopwatch.h"

namespace ringtail {

struct EmulationResult {
  std::string lines;  // emulation_log.h
  EmulationSummary summary;
  ComputeScript compute;       // as given, or as measured
  std::vector<float> weights;  // the arena's block, at the end: those of all workers
  PassTimes pass_times;        // real times
  RealTimes real;
  double real_s = 0;  // since the emulation was made
};

class Emulation {
 public:
  // Errors of EmulatedJob::Create. The pointers must outlive the emulation.
  static StatusOr<Emulation> Create(const LoadedConfig* loaded, const TrainingData* data,
                                    const EmulationScript& script);
  // Once. InvalidArgument where workers become too many for the batch; FailedPrecondition if all
  // workers have died; Cancelled once a stop signal came; those of the loader.
  Status Run();
  EmulationResult Result() const;  // so far
  // As a run's final.safetensors: averaged weights, if the run keeps them.
  Status WriteNetwork(const std::string& path);

 private:
  Emulation(const Stopwatch& watch, const TrainingData* data, std::unique_ptr<EmulatedJob> job,
            std::unique_ptr<EmulatedRule> rule)
      : watch_(watch), data_(data), job_(std::move(job)), rule_(std::move(rule)) {}

  Stopwatch watch_;  // since it is made
  const TrainingData* data_;
  std::unique_ptr<EmulatedJob> job_;
  std::unique_ptr<EmulatedRule> rule_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_EMULATION_H_
