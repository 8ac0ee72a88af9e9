#include "apps/emulator/measured_compute.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/median.h"
#include "core/stopwatch.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr int kWarmUps = 2, kPasses = 7;
constexpr double kMsPerSecond = 1e3;

AlignedBuffer Copy(std::span<const float> block) {
  AlignedBuffer copy(block.size_bytes());
  std::copy(block.begin(), block.end(), copy.floats().begin());
  return copy;
}

}  // namespace

StatusOr<ComputeScript> MeasureCompute(SharedNet* net, ElementRange rows, const OptimConfig& optim,
                                       ParameterArena* arena) {
  AlignedBuffer values = Copy(arena->values()), statistics = Copy(arena->buffer_values());
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(optim, arena));
  std::vector<double> pass_ms, update_ms;
  for (int i = 0; i < kWarmUps + kPasses; ++i) {
    Stopwatch watch;
    RT_RETURN_IF_ERROR(net->Compute(0, rows, nullptr).status());
    const double pass = watch.Restart() * kMsPerSecond;
    optimizer->Step(i, optim.learning_rate(), 1.0 / static_cast<double>(rows.count));
    if (i < kWarmUps) continue;
    pass_ms.push_back(pass);
    update_ms.push_back(watch.Seconds() * kMsPerSecond);
  }
  arena->SwapValues(&values, &statistics);
  ComputeScript compute;
  compute.set_ms_per_image(Median(pass_ms) / static_cast<double>(rows.count));
  compute.set_update_ms(Median(update_ms));
  return compute;
}

}  // namespace ringtail
