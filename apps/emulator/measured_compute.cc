#include "apps/emulator/measured_compute.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/plan/measure_facts.h"
#include "apps/plan/measure_update.h"
#include "apps/trainer/local/local_round.h"
#include "apps/trainer/local/round_report.h"
#include "core/aligned_buffer.h"
#include "core/machine/wake_delay.h"
#include "core/median.h"
#include "core/stopwatch.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "optim/optimizer.h"

namespace ringtail {
namespace {

constexpr int kWarmUps = 2, kPasses = 7;
constexpr double kLeastSeconds = 1;  // many periods of a limit on the processor
constexpr double kMostJitter = 2;    // script.proto

// Whether `passes` that took so long together say what one takes.
bool Enough(int64_t passes, double seconds) {
  return passes >= kPasses && seconds >= kLeastSeconds;
}

AlignedBuffer Copy(std::span<const float> block) {
  AlignedBuffer copy(block.size_bytes());
  std::copy(block.begin(), block.end(), copy.floats().begin());
  return copy;
}

Status MeasureSteps(SharedNet* net, ElementRange rows, StepImages* images, const OptimConfig& optim,
                    ParameterArena* arena, ComputeScript* compute) {
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(optim, arena));
  UpdateOfStep weights(optim, optimizer.get(), arena);
  const WakeDelay wake_delay;
  double pass_s = 0, update_s = 0, optimizer_s = 0;
  std::vector<double> steps;  // after the first ones
  for (int i = 0; !Enough(std::ssize(steps), pass_s + update_s); ++i) {
    Stopwatch watch;
    RT_RETURN_IF_ERROR(images->Next().status());
    RT_RETURN_IF_ERROR(net->Compute(0, rows, nullptr).status());
    const double pass = watch.Restart();
    const UpdateParts parts = weights.Update(i, rows.count);
    const double update = watch.Seconds();
    if (i < kWarmUps) continue;
    pass_s += pass;
    update_s += update;
    optimizer_s += parts.optimizer_s;
    steps.push_back(pass + update);
  }
  const auto passes = std::ssize(steps);
  compute->set_ms_per_image(pass_s / static_cast<double>(passes * rows.count) * kMsPerSecond);
  compute->set_update_ms(update_s / static_cast<double>(passes) * kMsPerSecond);
  compute->set_jitter(std::min(RelativeDeviation(steps), kMostJitter));
  compute->set_cores(std::max(1.0, CoresOfThisRank()));
  compute->set_wake_delay_ms(wake_delay.Mean() * kMsPerSecond);
  const MeasuredUpdate update{.grad_scale = 1.0 / static_cast<double>(rows.count),
                              .optimizer_s = optimizer_s / static_cast<double>(passes),
                              .first_step = kWarmUps + passes,
                              .runs = static_cast<int>(passes)};
  const std::vector<double> seconds = MeasurePreparation(optim, update, optimizer.get()).seconds;
  const double prepare_ms = std::accumulate(seconds.begin(), seconds.end(), 0.0) * kMsPerSecond;
  compute->set_prepare_ms(std::min(prepare_ms, compute->update_ms()));
  return OkStatus();
}

Status MeasureRound(const LocalConfig& config, ParameterArena* arena, ComputeScript* compute) {
  RT_ASSIGN_OR_RETURN(const auto round,
                      LocalRound::Create(arena, RuleOf(config), config.overlap()));
  double seconds = 0;
  int rounds = 0;  // after the first ones
  for (int i = 0; !Enough(rounds, seconds); ++i) {
    const Stopwatch watch;
    round->Take(1);
    round->Merge(i, 1, 1);
    if (i < kWarmUps) continue;
    seconds += watch.Seconds();
    ++rounds;
  }
  compute->set_round_ms(seconds / rounds * kMsPerSecond);
  return OkStatus();
}

// What workers exchange through codecs: gradients, differences at the ends of rounds, or, in a run
// whose rounds begin at an epoch, both, of which a script knows one cost. InvalidArgument if they
// differ. `images_per_step`: of all workers.
StatusOr<CodedKind> KindOf(const DistConfig& dist, int64_t images_per_step) {
  const CodedKind gradients{.config = dist.compression(),
                            .samples = static_cast<double>(images_per_step)};
  if (!UsesLocalRounds(dist)) return gradients;
  const CodedKind differences{.config = dist.local().compression()};
  if (dist.local().start_epoch() == 0 || !CompressesAnything(gradients.config)) return differences;
  if (!CompressesAnything(differences.config)) return gradients;
  using google::protobuf::util::MessageDifferencer;
  if (MessageDifferencer::Equals(gradients.config, differences.config)) return differences;
  return InvalidArgument(
      "gradients until dist.local.start_epoch and differences after it are coded in two ways, and "
      "what coding costs is measured for one: say it in the script (encode_ms and decode_ms of "
      "compute), or let dist.compression and dist.local.compression be the same");
}

void AddCoding(const CodedKind& kind, const ParameterArena& arena, ComputeScript* compute) {
  if (!CompressesAnything(kind.config)) return;
  const LayerCoding coding = MeasureCodedLayers(kind, arena);
  compute->set_encode_ms(coding.encode_seconds * kMsPerSecond);
  compute->set_decode_ms(coding.decode_seconds * kMsPerSecond);
}

}  // namespace

StatusOr<ComputeScript> MeasureCompute(SharedNet* net, ElementRange rows, StepImages* images,
                                       const RunConfig& config, ParameterArena* arena,
                                       int64_t images_per_step) {
  RT_ASSIGN_OR_RETURN(const CodedKind coded, KindOf(config.dist(), images_per_step));
  AlignedBuffer values = Copy(arena->values()), statistics = Copy(arena->buffer_values());
  ComputeScript compute;
  RT_RETURN_IF_ERROR(MeasureSteps(net, rows, images, config.optim(), arena, &compute));
  if (UsesLocalRounds(config.dist())) {
    RT_RETURN_IF_ERROR(MeasureRound(config.dist().local(), arena, &compute));
  }
  AddCoding(coded, *arena, &compute);
  arena->SwapValues(&values, &statistics);
  return compute;
}

}  // namespace ringtail
