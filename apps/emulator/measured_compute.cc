#include "apps/emulator/measured_compute.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/plan/measure_update.h"
#include "apps/trainer/local/local_round.h"
#include "apps/trainer/local/round_report.h"
#include "core/aligned_buffer.h"
#include "core/median.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr int kWarmUps = 2, kPasses = 7;

AlignedBuffer Copy(std::span<const float> block) {
  AlignedBuffer copy(block.size_bytes());
  std::copy(block.begin(), block.end(), copy.floats().begin());
  return copy;
}

Status MeasureSteps(SharedNet* net, ElementRange rows, const OptimConfig& optim,
                    ParameterArena* arena, ComputeScript* compute) {
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(optim, arena));
  UpdateOfStep weights(optim, optimizer.get(), arena);
  std::vector<double> pass_ms, update_ms, optimizer_s;
  for (int i = 0; i < kWarmUps + kPasses; ++i) {
    Stopwatch watch;
    RT_RETURN_IF_ERROR(net->Compute(0, rows, nullptr).status());
    const double pass = watch.Restart() * kMsPerSecond;
    const UpdateParts update = weights.Update(i, rows.count);
    if (i < kWarmUps) continue;
    pass_ms.push_back(pass);
    update_ms.push_back(watch.Seconds() * kMsPerSecond);
    optimizer_s.push_back(update.optimizer_s);
  }
  compute->set_ms_per_image(Median(pass_ms) / static_cast<double>(rows.count));
  compute->set_update_ms(Median(update_ms));
  const MeasuredUpdate update{.grad_scale = 1.0 / static_cast<double>(rows.count),
                              .optimizer_s = Median(optimizer_s),
                              .first_step = kWarmUps + kPasses,
                              .runs = kPasses};
  const std::vector<double> seconds = MeasurePreparation(optim, update, optimizer.get()).seconds;
  compute->set_prepare_ms(std::accumulate(seconds.begin(), seconds.end(), 0.0) * kMsPerSecond);
  return OkStatus();
}

Status MeasureRound(const LocalConfig& config, ParameterArena* arena, ComputeScript* compute) {
  RT_ASSIGN_OR_RETURN(const auto round,
                      LocalRound::Create(arena, RuleOf(config), config.overlap()));
  std::vector<double> round_ms;
  for (int i = 0; i < kWarmUps + kPasses; ++i) {
    const Stopwatch watch;
    round->Take(1);
    round->Merge(i, 1, 1);
    if (i >= kWarmUps) round_ms.push_back(watch.Seconds() * kMsPerSecond);
  }
  compute->set_round_ms(Median(round_ms));
  return OkStatus();
}

void AddCoding(const CodedKind& kind, const ParameterArena& arena, ComputeScript* compute) {
  if (!CompressesAnything(kind.config)) return;
  const LayerCoding coding = MeasureCodedLayers(kind, arena.parameters());
  compute->set_encode_ms(coding.encode_seconds * kMsPerSecond);
  compute->set_decode_ms(coding.decode_seconds * kMsPerSecond);
}

}  // namespace

StatusOr<ComputeScript> MeasureCompute(SharedNet* net, ElementRange rows, const RunConfig& config,
                                       ParameterArena* arena, int64_t images) {
  AlignedBuffer values = Copy(arena->values()), statistics = Copy(arena->buffer_values());
  ComputeScript compute;
  RT_RETURN_IF_ERROR(MeasureSteps(net, rows, config.optim(), arena, &compute));
  if (UsesLocalRounds(config.dist())) {
    RT_RETURN_IF_ERROR(MeasureRound(config.dist().local(), arena, &compute));
    AddCoding({.config = config.dist().local().compression()}, *arena, &compute);
  } else {
    AddCoding({.config = config.dist().compression(), .samples = static_cast<double>(images)},
              *arena, &compute);
  }
  arena->SwapValues(&values, &statistics);
  return compute;
}

}  // namespace ringtail
