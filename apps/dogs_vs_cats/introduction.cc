#include "apps/dogs_vs_cats/introduction.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "apps/algorithm_choices.h"
#include "apps/config/run_precision.h"
#include "apps/print.h"
#include "apps/trainer/data_warnings.h"
#include "apps/trainer/local/round_report.h"
#include "apps/version.h"
#include "core/logging.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "data/augmentation/trivial_augment.h"
#include "data/class_balance.h"
#include "dist/parameter_server/rule_choice.h"
#include "layers/element_types/bf16_unit.h"
#include "layers/net/net.h"
#include "optim/batch_growth.h"
#include "optim/loaded_weights.h"
#include "optim/schedule.h"

namespace ringtail {
namespace {

// FLOPs of one image, forward and backward, at the size that training begins with.
StatusOr<double> FlopsPerImage(const LoadedConfig& loaded, Model* model) {
  RT_ASSIGN_OR_RETURN(const auto net,
                      Net::Create(model, {.batch = 1,
                                          .image_size = TrainingImageSizes(loaded.config).front(),
                                          .training = false,  // a batch norm may need more images
                                          .plan_only = true}));
  double flops = 0;
  for (const LayerInfo& layer : net->layers()) flops += layer.forward_flops + layer.backward_flops;
  return flops;
}

// Of a run in f32: whether that was measured, or, where nothing was said, that bf16 may be faster here.
std::string DescribeFloat32(const TrainConfig& train) {
  if (train.precision() == AUTO) return DescribeTakenPrecision(train);
  if (train.has_precision() || FastBf16Unit() == Bf16Unit::kNone) return {};
  return "precision: f32; this processor multiplies bf16 faster: --precision auto measures what a "
         "step gains, and takes it";
}

// What the training net computes in, once its algorithms are chosen. Empty if there is nothing to say.
StatusOr<std::string> DescribePrecisionOf(const Generation& generation) {
  const RunConfig& config = generation.config();
  Model* model = generation.state().model();
  if (model->blob_type() == BlobType::kF32) {
    return DescribeFloat32(config.train());
  }
  RT_ASSIGN_OR_RETURN(
      const auto net,
      Net::Create(model, {.batch = generation.division.own.batch / config.train().accumulation(),
                          .image_size = TrainingImageSizes(config).front(),
                          .plan_only = true,
                          .algorithms = &ProgramAlgorithms()}));
  return DescribeRunPrecision(config.train(), net->layers());
}

// "; ring: 25 MB over 4 ranks at 117 MB/s, 321 ms": the algorithm for gradients, and the reason for it.
std::string DescribeExchange(const Generation& generation) {
  if (generation.replicas->alone()) return {};  // stages of one pipeline
  const auto bytes = static_cast<int64_t>(generation.arena().grads().size_bytes());
  return "; " + generation.replicas->DescribeAlgorithm(bytes);
}

void PrintClassWeights(const TrainingData& data, const DataConfig& config) {
  if (config.class_balance() == 0) return;
  Print("weights of classes in the training loss: {}\n",
        DescribeClassWeights(data.dataset->class_names(),
                             ClassCounts(*data.dataset, data.split.train), config.class_balance()));
}

// What a warm start has taken, what is frozen, and whether the rate suits both.
void PrintFineTuning(const Generation& generation) {
  const TrainingRun& run = *generation.run;
  const TrainConfig& train = generation.config().train();
  const ParameterArena& arena = generation.arena();
  if (!run.start_report.empty()) Print("{}\n", run.start_report);
  if (arena.num_fixed() > 0) {
    const std::string until =
        train.freeze_epochs() > 0 ? " for " + Counted(train.freeze_epochs(), "epoch") : "";
    Print("frozen{}: {} of {} parameters ({})\n", until, arena.num_fixed(), arena.num_parameters(),
          fmt::join(train.freeze(), ", "));
  }
  const bool body_stays = arena.num_fixed() > 0 && train.freeze_epochs() == 0;
  if (train.weights().empty() || body_stays) return;
  const std::string warning =
      WarnOfErasing(generation.optim.config, generation.config().optim().learning_rate());
  if (!warning.empty()) LogWarning(warning);
}

}  // namespace

Status PrintIntroduction(const Generation& generation, const std::string& threads,
                         const WorldSession& session) {
  const LoadedConfig& loaded = *generation.run->options.loaded;
  const TrainingData& data = generation.data();
  const TrainingPlan& plan = generation.plan;
  const ScaledOptim& optim = generation.optim;
  Model* const own = generation.state().model();
  Model* const model = own->whole() != nullptr ? own->whole() : own;  // of all stages
  RT_ASSIGN_OR_RETURN(const double flops, FlopsPerImage(loaded, model));
  Print("{}; {}\n", VersionLine(), threads);
  if (!session.world().alone()) {
    const bool servers = UsesServers(loaded.config.dist().asynchronous());
    Print("{}{}; batch {} {}\n", session.Describe(), DescribeExchange(generation),
          servers ? plan.growth_run().images_per_batch : generation.division.own.global_batch,
          servers ? "in an update" : "in total");
  }
  if (generation.run->stage.divides()) Print("{}\n", generation.run->stage.Describe());
  if (generation.run->shards.divides()) Print("{}\n", generation.run->shards.Describe());
  Print("{}; {}\n", data.dataset->Describe(), data.Counts());
  Print("{}: {} parameters, {:.0f} MFLOP per image of {} pixels; {}, {}; {}\n",
        loaded.config.net().name(), model->CountParameters(), flops / kMega,
        TrainingImageSizes(loaded.config).front(), generation.state().optimizer()->Describe(),
        DescribeSchedule(optim.config), Counted(plan.total_steps(), "step"));
  const std::string augmented = DescribeAugmentations(loaded.config.data().augment());
  if (!augmented.empty()) Print("training images: {}\n", augmented);
  PrintClassWeights(data, loaded.config.data());
  RT_ASSIGN_OR_RETURN(const std::string precision, DescribePrecisionOf(generation));
  if (!precision.empty()) Print("{}\n", precision);
  PrintFineTuning(generation);
  if (!generation.division.summary.empty()) Print("{}\n", generation.division.summary);
  if (!optim.summary.empty()) Print("{}\n", optim.summary);
  for (const std::string& warning : optim.warnings) LogWarning(warning);
  const std::string other_rule =
      WarnOfOtherRulesRate(optim.config, loaded.config.optim().learning_rate());
  if (!other_rule.empty()) LogWarning(other_rule);
  const GrowthReport growth =
      ReportGrowth(optim.config, plan.growth_run(), plan.stages(), plan.total_steps());
  if (!growth.summary.empty()) Print("{}\n", growth.summary);
  for (const std::string& warning : growth.warnings) LogWarning(warning);
  const std::string long_rounds = WarnOfLongRounds(loaded.config, plan, session.world().alone());
  if (!long_rounds.empty()) LogWarning(long_rounds);
  for (const std::string& warning :
       DataWarnings(data, loaded.config, plan.growth_run().images_per_batch)) {
    LogWarning(warning);
  }
  for (const BadImage& bad : data.bad) {
    LogWarning(fmt::format("left out: {} {}", bad.key, bad.reason));
  }
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace ringtail
