#include "apps/trainer/decide_precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "apps/algorithm_choices.h"
#include "apps/config/run_precision.h"
#include "apps/memory_advice.h"
#include "apps/random_batch.h"
#include "apps/trainer/checkpoint/numerics.h"
#include "apps/trainer/set_up_in_turn.h"
#include "core/logging.h"
#include "core/median.h"
#include "core/random.h"
#include "core/stop_signal.h"
#include "core/stopwatch.h"
#include "core/text/counted.h"
#include "core/units.h"
#include "layers/net/net.h"
#include "layers/net/precision.h"

namespace ringtail {
namespace {

// Several nets of each precision, in turn, and steps of at least so long in each: where its memory
// happens to lie, and what else the machine does meanwhile, must not decide.
constexpr int kRounds = 3;
constexpr double kSecondsOfNet = 0.3;
constexpr double kMostStepsOfNet = 10;
constexpr double kMostSeconds = 6;  // no other round begins afterwards
constexpr double kMsDigits = 1e3;

// Precisions of a network, each measured with nets of its own.
class StepTimer {
 public:
  StepTimer(Model* model, const StepShape& step, TrainingWorld* world)
      : model_(model), step_(step), world_(world), batch_(*model, step.images, step.image_size) {}

  // Chooses the convolution algorithms of this precision's net, and frees it.
  Status SetUp(Precision precision) { return CreateNet(precision).status(); }

  // All ranks: adds the seconds of some steps of a new net.
  Status TimeSteps(Precision precision, std::vector<double>* seconds) {
    RT_ASSIGN_OR_RETURN(const auto net, CreateNet(precision));
    RT_ASSIGN_OR_RETURN(const double warm_up, TimeStep(net.get()));
    const auto steps = static_cast<int>(std::clamp(kSecondsOfNet / warm_up, 1.0, kMostStepsOfNet));
    RT_RETURN_IF_ERROR(world_->Barrier());
    for (int i = 0; i < steps; ++i) {
      RT_ASSIGN_OR_RETURN(const double taken, TimeStep(net.get()));
      seconds->push_back(taken);
    }
    return OkStatus();
  }

 private:
  StatusOr<std::unique_ptr<Net>> CreateNet(Precision precision) {
    model_->set_blob_type(BlobTypeOf(precision));
    return AdviseOnMemory(
        Net::Create(model_, {.batch = step_.images,
                             .image_size = step_.image_size,
                             .algorithms = &ProgramAlgorithms()}),
        "a lower batch (train.batch), a higher train.accumulation, or smaller images");
  }

  StatusOr<double> TimeStep(Net* net) {
    if (StopSignal() != 0) return Cancelled("a signal asked to stop");
    const Stopwatch watch;
    StepContext context;
    context.step = steps_++;
    net->Forward(batch_.view(), context);
    net->Backward();
    const double seconds = watch.Seconds();
    world_->progress()->Tick();
    return seconds;
  }

  Model* model_;
  StepShape step_;
  TrainingWorld* world_;
  RandomBatch batch_;
  uint64_t steps_ = 0;
};

// Whether what train.freeze names is frozen for most of the run.
bool StaysFrozen(const TrainConfig& train) {
  return train.freeze_epochs() == 0 || 2 * train.freeze_epochs() >= train.epochs();
}

// On all ranks: whether rank 0 has measured for long enough.
StatusOr<bool> IsEnough(const Stopwatch& since_begin, TrainingWorld* world) {
  RT_ASSIGN_OR_RETURN(const auto enough,
                      world->ShareNumbers({since_begin.Seconds() > kMostSeconds ? 1 : 0}, 0));
  return enough.at(0) != 0;
}

std::optional<MeasuredPrecision> Recall(const std::string& key, const StepShape& step) {
  const AlgorithmChoice* known = ProgramAlgorithms().Peek(key);
  if (known == nullptr) return std::nullopt;
  const auto seconds = [&](Precision precision) {
    const auto found = known->seconds.find(Precision_Name(precision));
    return found != known->seconds.end() ? found->second : 0;
  };
  const PrecisionSeconds both{.float32 = seconds(FLOAT32), .bfloat16 = seconds(BFLOAT16)};
  if (!(both.float32 > 0 && both.bfloat16 > 0)) return std::nullopt;
  return TakeFaster(both, step);
}

void Remember(const std::string& key, const PrecisionSeconds& seconds,
              const MeasuredPrecision& taken) {
  ProgramAlgorithms().Add(key, {.algorithm = Precision_Name(taken.precision()),
                                .seconds = {{Precision_Name(FLOAT32), seconds.float32},
                                            {Precision_Name(BFLOAT16), seconds.bfloat16}}});
  ProgramAlgorithms().Save();
}

// As long as the slowest rank takes.
PrecisionSeconds Slowest(const std::vector<PrecisionSeconds>& ranks) {
  PrecisionSeconds slowest;
  for (const PrecisionSeconds& rank : ranks) {
    slowest.float32 = std::max(slowest.float32, rank.float32);
    slowest.bfloat16 = std::max(slowest.bfloat16, rank.bfloat16);
  }
  return slowest;
}

double Ms(double seconds) { return std::round(seconds * kMsPerSecond * kMsDigits) / kMsDigits; }

// Rank 0's, on all ranks; empty: it knows none.
StatusOr<std::optional<MeasuredPrecision>> ShareKnown(std::optional<MeasuredPrecision> known,
                                                      TrainingWorld* world) {
  // (With the field set, the bytes are not empty.)
  if (known) known->set_precision(known->precision());
  RT_ASSIGN_OR_RETURN(const std::string bytes,
                      world->ShareText(known ? known->SerializeAsString() : ""));
  if (bytes.empty()) return std::optional<MeasuredPrecision>();
  MeasuredPrecision shared;
  if (!shared.ParseFromString(bytes)) return DataLoss("rank 0 sends a precision that is none");
  return std::optional(std::move(shared));
}

}  // namespace

StepShape StepOfRun(const RunConfig& config) {
  const TrainConfig& train = config.train();
  struct Phase {
    double begin;
    int64_t image_size;
  };
  std::vector<Phase> phases = {{0, config.data().image_size()}};
  for (const PhaseConfig& phase : train.phase()) {
    phases.push_back({phase.from_epoch(), phase.image_size()});
  }
  StepShape longest{.images = PartBatch(config), .image_size = TrainingImageSizes(config)[0]};
  double most = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const double end = i + 1 < phases.size() ? phases[i + 1].begin : train.epochs();
    const auto side = static_cast<double>(phases[i].image_size);
    const double work = (std::min(end, train.epochs()) - phases[i].begin) * side * side;
    if (work <= most) continue;
    most = work;
    longest.image_size = phases[i].image_size;
  }
  return longest;
}

StatusOr<PrecisionSeconds> MeasureBothPrecisions(const LoadedConfig& loaded, const StepShape& step,
                                                 TrainingWorld* world) {
  const ScopedPhase measuring(world->progress(), Phase::kSetUp);
  if (world->leads()) {
    LogInfo(
        fmt::format("train.precision AUTO: measures steps of {} of {} pixels in f32 and in bf16",
                    Counted(step.images, "image"), step.image_size));
  }
  RT_ASSIGN_OR_RETURN(const auto model, CreateModelAt(step.image_size, loaded, /*allocate=*/true,
                                                      StaysFrozen(loaded.config.train())));
  model->Initialize(loaded.config.train().seed());
  StepTimer timer(model.get(), step, world);
  RT_RETURN_IF_ERROR(SetUpInTurn(world, fmt::format("batch {}", step.images), [&]() -> Status {
    RT_RETURN_IF_ERROR(timer.SetUp(FLOAT32));
    return timer.SetUp(BFLOAT16);
  }));
  std::vector<double> float32, bfloat16;
  const Stopwatch since_begin;
  for (int round = 0; round < kRounds; ++round) {
    for (const bool first : {true, false}) {
      const bool in_f32 = first == (round % 2 == 0);
      RT_RETURN_IF_ERROR(in_f32 ? timer.TimeSteps(FLOAT32, &float32)
                                : timer.TimeSteps(BFLOAT16, &bfloat16));
    }
    RT_ASSIGN_OR_RETURN(const bool enough, IsEnough(since_begin, world));
    if (enough) break;
  }
  return PrecisionSeconds{.float32 = Median(std::move(float32)),
                          .bfloat16 = Median(std::move(bfloat16))};
}

MeasuredPrecision TakeFaster(const PrecisionSeconds& seconds, const StepShape& step) {
  MeasuredPrecision taken;
  const bool faster = seconds.float32 >= kLeastBf16Gain * seconds.bfloat16;
  taken.set_precision(faster ? BFLOAT16 : FLOAT32);
  taken.set_float32_ms(Ms(seconds.float32));
  taken.set_bfloat16_ms(Ms(seconds.bfloat16));
  taken.set_images(static_cast<int32_t>(step.images));
  taken.set_image_size(static_cast<int32_t>(step.image_size));
  return taken;
}

std::string PrecisionKey(const RunConfig& config, const StepShape& step,
                         std::vector<std::string> machines) {
  const auto ranks = std::ssize(machines);
  std::ranges::sort(machines);
  machines.erase(std::unique(machines.begin(), machines.end()), machines.end());
  // Whatever changes the net changes its number. (Its name is for people.)
  NetConfig net = config.net();
  net.clear_name();
  std::string parts = net.SerializeAsString();
  if (StaysFrozen(config.train())) {
    parts += fmt::format("{}", fmt::join(config.train().freeze(), ","));
  }
  return fmt::format("{}{}; precision of {} {:016x}, forward and backward, {} images of {} pixels",
                     ranks > 1 ? fmt::format("{} ranks of ", ranks) : "",
                     fmt::join(machines, " and "), config.net().name(),
                     RngKey(0).With(parts).bits(), step.images, step.image_size);
}

Status DecidePrecision(const StepShape& step, TrainingWorld* world, LoadedConfig* loaded,
                       const MeasurePrecisions& measure) {
  TrainConfig* const train = loaded->config.mutable_train();
  if (train->precision() != AUTO) return OkStatus();
  RT_ASSIGN_OR_RETURN(const auto machines, world->GatherText(ThisMachine()));
  const std::string key = PrecisionKey(loaded->config, step, machines);
  std::optional<MeasuredPrecision> known;
  if (world->leads()) {
    known = train->has_measured_precision() ? train->measured_precision() : Recall(key, step);
  }
  RT_ASSIGN_OR_RETURN(known, ShareKnown(std::move(known), world));
  if (!known) {
    RT_ASSIGN_OR_RETURN(const PrecisionSeconds own, measure(*loaded, step, world));
    RT_ASSIGN_OR_RETURN(const auto ranks, world->Gather(own));
    const PrecisionSeconds slowest = Slowest(ranks);
    known = TakeFaster(slowest, step);
    if (world->leads()) Remember(key, slowest, *known);
  }
  *train->mutable_measured_precision() = *std::move(known);
  return OkStatus();
}

Status DecidePrecisionAlone(const StepShape& step, LoadedConfig* loaded) {
  if (loaded->config.train().precision() != AUTO) return OkStatus();
  TrainingWorld alone;
  RT_RETURN_IF_ERROR(DecidePrecision(step, &alone, loaded));
  LogInfo(DescribeTakenPrecision(loaded->config.train()));
  return OkStatus();
}

void RecallPrecision(const StepShape& step, LoadedConfig* loaded) {
  TrainConfig* const train = loaded->config.mutable_train();
  if (!PrecisionIsOpen(*train)) return;
  if (const auto known = Recall(PrecisionKey(loaded->config, step, {ThisMachine()}), step)) {
    *train->mutable_measured_precision() = *known;
  }
}

}  // namespace ringtail
