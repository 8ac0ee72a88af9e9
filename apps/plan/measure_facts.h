// Measures what the planner needs to know of this machine (dist/planner/planner.proto): backward's
// timetable, by parameter and batch; the optimizer; and what each compression scheme costs.
//
// Steps do not wait for images, so data_wait_s stays 0; input threads that share the cores load them
// meanwhile (step_images.h). The network is not measured, and `cluster` is left to the caller.
// Cost: some seconds, of which most is spent in steps of the largest batch and images; and the
// measurement of convolutions that this machine has never seen. Thread-safety: the trainer thread only. Errors:
// those of the config and the net.
#ifndef RINGTAIL_APPS_PLAN_MEASURE_FACTS_H_
#define RINGTAIL_APPS_PLAN_MEASURE_FACTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/config/run_config.h"
#include "apps/plan/size_shares.h"
#include "apps/trainer/training_data.h"
#include "core/status.h"
#include "dist/planner/planner.pb.h"

namespace ringtail {

struct MeasureFactsOptions {
  int64_t largest_batch = 64;
  // Sizes of images in the order of training, of which the first one is measured in all detail: of the
  // others fewer steps are. Not empty.
  std::vector<SizeShare> sizes = {{.image_size = 64}};
  int64_t steps = 8;  // timed per batch; medians count
  int fractions = 4;  // batches measured: the largest, a half, a quarter and so on
  // Whose images steps are made with, to see what loading them costs; null: random ones, at no cost.
  const TrainingData* data = nullptr;
  int ranks_here = 1;  // on this host
  bool frozen = true;  // what train.freeze names; false: as after train.freeze_epochs
  // Names of kSchemes, beside the config's own two; every one of them by default.
  std::vector<std::string> schemes = AllSchemes();
  // Creates a net for `batch` images of a size by calling `create`; ranks that measure together have
  // to agree on convolutions (apps/trainer/set_up_in_turn.h). By default it just does.
  std::function<Status(int64_t batch, int64_t image_size, const std::function<Status()>& create)>
      set_up = {};
  // Of ranks that measure together: by how much their steps, the seconds of this one's, vary from rank to
  // rank. By default one rank's from step to step.
  std::function<StatusOr<double>(const std::vector<double>& step_s)> deviation = {};

  static std::vector<std::string> AllSchemes();
};

// The config's own schemes among the facts: of gradients, or with rounds (dist.local) of what they
// exchange; and of the gradients before rounds begin.
inline constexpr char kOwnScheme[] = "the config's own";
inline constexpr char kOwnSchemeBeforeRounds[] = "the config's own, before rounds";

// What this rank computes with: its compute threads, or its quota of the processor if that is less.
double CoresOfThisRank();

StatusOr<PlannerFacts> MeasureFacts(const LoadedConfig& loaded, const MeasureFactsOptions& options);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PLAN_MEASURE_FACTS_H_
