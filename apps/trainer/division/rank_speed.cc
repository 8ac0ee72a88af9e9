#include "apps/trainer/division/rank_speed.h"

#include <fmt/core.h>

#include <atomic>
#include <memory>
#include <vector>

#include "apps/random_batch.h"
#include "apps/trainer/set_up_in_turn.h"
#include "apps/trainer/update/gradient_pass.h"
#include "core/median.h"
#include "core/stopwatch.h"

namespace ringtail {
namespace {

// The median of three ignores one disturbance. The seconds are for machines shared with other work:
// on such a machine medians over one second of two equal ranks differed by more than kSameSpeed
// (proportional_batches.h) in 13 of 32 measurements, over three seconds in 1 of 8.
constexpr size_t kLeastPasses = 3;
constexpr double kLeastSeconds = 3;

// The seconds of this rank's passes from now on until all ranks have enough of them.
StatusOr<std::vector<double>> TimePasses(const std::function<void()>& pass, TrainingWorld* world) {
  std::vector<double> seconds;
  std::atomic<bool> all_have_enough = false;
  bool enough = false;
  for (const Stopwatch since_begin; !all_have_enough;) {
    const Stopwatch watch;
    pass();
    seconds.push_back(watch.Seconds());
    world->progress()->Tick();
    if (enough || seconds.size() < kLeastPasses || since_begin.Seconds() < kLeastSeconds) continue;
    enough = true;
    world->gradient_thread()->Submit([&](Communicator* ranks) {
      Status status = ranks->Barrier();
      all_have_enough = true;  // also after an error, or the loop would never end
      return status;
    });
  }
  RT_RETURN_IF_ERROR(world->WaitForGradients());
  world->gradient_thread()->TakeTimes();  // drops times that belong to no step
  return seconds;
}

}  // namespace

StatusOr<double> MeasureRankSpeed(const LoadedConfig& loaded, int64_t batch, TrainingWorld* world) {
  const TrainConfig& train = loaded.config.train();
  const int64_t image_size = TrainingImageSizes(loaded.config).front();
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded));
  model->Initialize(train.seed());
  std::unique_ptr<GradientPass> gradients;
  RT_RETURN_IF_ERROR(SetUpInTurn(world, fmt::format("batch {}", batch), [&]() -> Status {
    RT_ASSIGN_OR_RETURN(gradients, GradientPass::Create(model.get(), {.batch = batch,
                                                                      .parts = train.accumulation(),
                                                                      .image_size = image_size,
                                                                      .seed = train.seed()}));
    return OkStatus();
  }));
  const RandomBatch images(*model, batch, image_size);
  const auto pass = [&] { gradients->Run(images.view(), {}); };
  pass();  // warms up caches and threads, and touches the memory
  RT_RETURN_IF_ERROR(world->Barrier());
  RT_ASSIGN_OR_RETURN(std::vector<double> seconds, TimePasses(pass, world));
  return static_cast<double>(batch) / Median(std::move(seconds));
}

}  // namespace ringtail
