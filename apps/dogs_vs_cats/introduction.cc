#include "apps/dogs_vs_cats/introduction.h"

#include <fmt/core.h>

#include <cstdio>

#include "apps/algorithm_choices.h"
#include "apps/print.h"
#include "apps/version.h"
#include "core/counted.h"
#include "core/logging.h"
#include "layers/net/net.h"
#include "optim/batch_growth.h"
#include "optim/schedule.h"

namespace ringtail {
namespace {

// FLOPs of one image, forward and backward, at the size that training begins with.
StatusOr<double> FlopsPerImage(const LoadedConfig& loaded, Model* model) {
  RT_ASSIGN_OR_RETURN(const auto net,
                      Net::Create(model, {.batch = 1,
                                          .image_size = TrainingImageSizes(loaded.config).front(),
                                          .training = false,  // takes no memory for gradients
                                          .measure = false,
                                          .algorithms = &ProgramAlgorithms()}));
  double flops = 0;
  for (const LayerInfo& layer : net->layers()) flops += layer.forward_flops + layer.backward_flops;
  return flops;
}

}  // namespace

Status PrintIntroduction(const LoadedConfig& loaded, const std::string& threads,
                         const TrainingData& data, const Trainer& trainer,
                         const WorldSession& session) {
  constexpr double kMega = 1e6;
  Model* model = trainer.state().model();
  RT_ASSIGN_OR_RETURN(const double flops, FlopsPerImage(loaded, model));
  Print("{}; {}\n", VersionLine(), threads);
  if (!session.world().alone()) {
    Print("{}; batch {} in all\n", session.Describe(model->arena().grads().size_bytes()),
          trainer.division().own.global_batch);
  }
  Print("{}; {}\n", data.dataset->Describe(), data.Counts());
  Print("{}: {} parameters, {:.0f} MFLOP per image of {} pixels; {}, {}; {}\n",
        loaded.config.net().name(), model->arena().num_parameters(), flops / kMega,
        TrainingImageSizes(loaded.config).front(), trainer.state().optimizer()->Describe(),
        DescribeSchedule(trainer.optim().config), Counted(trainer.plan().total_steps(), "step"));
  if (!trainer.division().summary.empty()) Print("{}\n", trainer.division().summary);
  if (!trainer.optim().summary.empty()) Print("{}\n", trainer.optim().summary);
  for (const std::string& warning : trainer.optim().warnings) LogWarning(warning);
  const TrainingPlan& plan = trainer.plan();
  const GrowthReport growth =
      ReportGrowth(trainer.optim().config, plan.growth_run(), plan.stages(), plan.total_steps());
  if (!growth.summary.empty()) Print("{}\n", growth.summary);
  for (const std::string& warning : growth.warnings) LogWarning(warning);
  for (const BadImage& bad : data.bad) {
    LogWarning(fmt::format("left out: {} {}", bad.key, bad.reason));
  }
  std::fflush(stdout);
  return OkStatus();
}

}  // namespace ringtail
