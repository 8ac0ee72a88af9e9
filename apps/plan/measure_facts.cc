#include "apps/plan/measure_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/algorithm_choices.h"
#include "apps/memory_advice.h"
#include "apps/plan/measure_loading.h"
#include "apps/plan/measure_update.h"
#include "apps/random_batch.h"
#include "apps/trainer/local/local_round.h"
#include "core/machine/thread_budget.h"
#include "core/median.h"
#include "core/parallel_for.h"
#include "core/stopwatch.h"
#include "dist/compression/layer_costs.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "layers/net/net.h"
#include "optim/gradient_norm.h"
#include "optim/optimizer.h"
#include "optim/weight_average.h"

namespace ringtail {
namespace {

constexpr int64_t kWarmUpSteps = 2;
constexpr double kLearningRate = 1e-3;  // small, so that values stay finite and normal
constexpr double kOuterMomentum = 0.6, kOuterRate = 0.7;

// The schemes that a plan compares, beside dense and the config's own.
struct NamedScheme {
  const char* name;
  const char* compression;
};
constexpr NamedScheme kSchemes[] = {
    {"bf16", "scheme { bf16 {} }"},
    {"linear8", "scheme { linear8 {} }"},
    {"qsgd4", "scheme { qsgd { levels: 7 } }"},
    {"two_bit", "scheme { two_bit {} }"},
    {"top_k 1%", "scheme { top_k {} }"},
    {"top_k 0.1%",  // but small layers, which would else be most of what travels, in 8 bits
     "scheme { top_k { density: 0.001 values: BF16 } } min_elements: 1000 "
     "rule { max_elements: 9999 scheme { linear8 {} } }"},
    {"power_sgd", "scheme { power_sgd {} }"},
    {"hylo", "scheme { hylo {} }"}};

ParameterFacts::Kind KindOf(ParameterKind kind) {
  switch (kind) {
    case ParameterKind::kConvolutionWeight:
      return ParameterFacts::CONVOLUTION_WEIGHT;
    case ParameterKind::kLinearWeight:
      return ParameterFacts::LINEAR_WEIGHT;
    case ParameterKind::kVector:
      break;
  }
  return ParameterFacts::VECTOR;
}

// Medians of what is measured again and again, in seconds.
class Samples {
 public:
  explicit Samples(size_t count) : samples_(count) {}
  void Add(size_t i, double seconds) { samples_[i].push_back(seconds); }
  double median(size_t i) const { return Median(samples_[i]); }

 private:
  std::vector<std::vector<double>> samples_;
};

struct MeasuredStep {
  StepFacts facts;
  double update_s = 0, optimizer_s = 0;  // the optimizer's part of it
  double deviation = 0;                  // of the whole step, as a share of it
};

// The standard deviation by the median of deviations, which a single late step does not change (Hampel
// 1974), as a share of the median.
double RelativeDeviation(const std::vector<double>& seconds) {
  constexpr double kOfNormal = 1.4826;
  const double median = Median(seconds);
  std::vector<double> deviations = seconds;
  for (double& s : deviations) s = std::fabs(s - median);
  return kOfNormal * Median(std::move(deviations)) / median;
}

// What a run does with a step's gradients (AllreduceUpdate): each pass over all weights counts.
class UpdateOfStep {
 public:
  UpdateOfStep(const OptimConfig& config, Optimizer* optimizer, ParameterArena* arena)
      : clip_norm_(config.clip_norm()), optimizer_(optimizer), arena_(arena) {
    if (config.ema_decay() > 0) average_.emplace(config.ema_decay(), arena);
  }

  // The seconds of the optimizer alone.
  double Update(int64_t step, int64_t batch) {
    const double mean = 1 / static_cast<double>(batch), norm = GradientNorm(*arena_, mean);
    const Stopwatch watch;
    optimizer_->Step(step, kLearningRate, mean * ClipFactor(norm, clip_norm_));
    const double seconds = watch.Seconds();
    if (average_.has_value()) average_->Update(step);
    return seconds;
  }

 private:
  const double clip_norm_;
  Optimizer* const optimizer_;
  ParameterArena* const arena_;
  std::optional<WeightAverage> average_;
};

// Whole steps, each with its update: what one part leaves in the caches, or has driven out of them,
// is what the next one finds in a run.
StatusOr<MeasuredStep> MeasureStep(Model* model, UpdateOfStep* weights, int64_t batch,
                                   const MeasureFactsOptions& options) {
  std::unique_ptr<Net> net;
  const auto create = [&]() -> Status {
    RT_ASSIGN_OR_RETURN(net,
                        AdviseOnMemory(Net::Create(model, {.batch = batch,
                                                           .image_size = options.image_size,
                                                           .algorithms = &ProgramAlgorithms()}),
                                       "a lower --part-batch or --image-size"));
    return OkStatus();
  };
  RT_RETURN_IF_ERROR(options.set_up ? options.set_up(batch, create) : create());
  const RandomBatch images(*model, batch, options.image_size);
  const size_t parameters = model->arena().parameters().size();
  const size_t forwards = parameters, backwards = forwards + 1, updates = backwards + 1;
  const size_t optimizers = updates + 1;
  Samples samples(optimizers + 1);
  std::vector<double> steps;
  for (int64_t i = -kWarmUpSteps; i < options.steps; ++i) {
    Stopwatch watch;
    net->Forward(images.view(), {.step = static_cast<uint64_t>(i + kWarmUpSteps)});
    const double forward = watch.Restart();
    size_t next = 0;
    std::vector<double> finished(parameters);
    net->Backward([&](const Parameter&) { finished[next++] = watch.Seconds(); });
    const double backward = watch.Restart();
    const double optimizer = weights->Update(i + kWarmUpSteps, batch);
    const double update = watch.Seconds();
    if (i < 0) continue;
    for (size_t p = 0; p < parameters; ++p) samples.Add(p, finished[p]);
    samples.Add(forwards, forward);
    samples.Add(backwards, backward);
    samples.Add(updates, update);
    samples.Add(optimizers, optimizer);
    steps.push_back(forward + backward + update);
  }
  MeasuredStep measured{.update_s = samples.median(updates),
                        .optimizer_s = samples.median(optimizers),
                        .deviation = RelativeDeviation(steps)};
  StepFacts& step = measured.facts;
  step.set_batch(batch);
  step.set_forward_s(samples.median(forwards));
  step.set_backward_s(samples.median(backwards));
  double before = 0;  // medians of several measurements need not be in order
  for (size_t p = 0; p < parameters; ++p) {
    before = std::clamp(samples.median(p), before, step.backward_s());
    step.add_finish_s(before);
  }
  return measured;
}

template <typename Run>
double MedianSeconds(int64_t runs, const Run& run) {
  std::vector<double> seconds;
  for (int64_t i = -1; i < runs; ++i) {
    const Stopwatch watch;
    run();
    if (i >= 0) seconds.push_back(watch.Seconds());
  }
  return Median(std::move(seconds));
}

// What the end of a round takes beside its exchange: taking what was changed, merging, and showing what
// is common. Of weights that have not changed, which takes as long.
StatusOr<double> MeasureMerge(const LocalConfig& config, ParameterArena* arena, int64_t runs) {
  RT_ASSIGN_OR_RETURN(
      const auto round,
      LocalRound::Create(arena, {.learning_rate = kOuterRate, .momentum = kOuterMomentum},
                         config.overlap()));
  int64_t number = 0;
  return MedianSeconds(runs, [&] {
    round->Take(1);
    round->Merge(number++, 1, kLearningRate);
    round->Swap();
    round->Swap();
  });
}

// Layers of the same shape cost the same.
void MeasureScheme(const std::string& name, const CompressionConfig& compression,
                   const ParameterArena& arena, PlannerFacts* facts) {
  SchemeFacts* const scheme = facts->add_scheme();
  scheme->set_name(name);
  *scheme->mutable_compression() = compression;
  const std::vector<LayerScheme> layers =
      ChooseSchemes(compression, arena.parameters(), /*samples=*/1);
  std::map<std::tuple<std::string, ParameterKind, int64_t, int64_t>, LayerCoding> known;
  for (size_t i = 0; i < layers.size(); ++i) {
    const GradientShape shape = GradientShapeOf(arena.parameters()[i].spec);
    const std::tuple key{layers[i].name, shape.kind, shape.rows, shape.columns};
    auto found = known.find(key);
    if (found == known.end()) {
      found = known.emplace(key, MeasureCoding(layers[i], shape)).first;
    }
    scheme->add_encode_s(found->second.encode_seconds);
    scheme->add_decode_s(found->second.decode_seconds);
  }
}

Status MeasureSchemes(const CompressionConfig& own, const std::vector<std::string>& names,
                      const ParameterArena& arena, PlannerFacts* facts) {
  if (CompressesAnything(own)) MeasureScheme("the config's own", own, arena, facts);
  for (const NamedScheme& scheme : kSchemes) {
    if (std::ranges::find(names, scheme.name) == names.end()) continue;
    CompressionConfig compression;
    RT_RETURN_IF_ERROR(ParseTextConfig(scheme.compression, scheme.name, &compression, nullptr));
    MeasureScheme(scheme.name, compression, arena, facts);
  }
  return OkStatus();
}

// What this run exchanges is compressed with.
const CompressionConfig& OwnCompression(const DistConfig& config) {
  return UsesLocalRounds(config) ? config.local().compression() : config.compression();
}

}  // namespace

std::vector<std::string> MeasureFactsOptions::AllSchemes() {
  std::vector<std::string> names;
  for (const NamedScheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

double CoresOfThisRank() {
  return std::min(static_cast<double>(NumComputeThreads()), CgroupQuota().cores);
}

StatusOr<PlannerFacts> MeasureFacts(const LoadedConfig& loaded,
                                    const MeasureFactsOptions& options) {
  RT_ASSIGN_OR_RETURN(const auto model, CreateModel(loaded));
  model->Initialize(loaded.config.train().seed());
  PlannerFacts facts;
  facts.set_net(loaded.config.net().name());
  facts.set_cores(CoresOfThisRank());
  facts.set_quota_period_s(CgroupQuota().period_s);
  ParameterArena& arena = model->arena();
  facts.set_buffer_elements(static_cast<int64_t>(arena.buffer_values().size()));
  for (const Parameter& parameter : arena.parameters()) {
    ParameterFacts* const known = facts.add_parameter();
    known->set_name(parameter.spec.name);
    known->set_kind(KindOf(parameter.spec.kind));
    for (const int64_t dimension : parameter.spec.shape) known->add_dimension(dimension);
  }
  RT_ASSIGN_OR_RETURN(const auto optimizer, Optimizer::Create(loaded.config.optim(), &arena));
  UpdateOfStep weights(loaded.config.optim(), optimizer.get(), &arena);
  double optimizer_s = 0;
  int64_t before = 0;
  for (int shift = options.fractions - 1; shift >= 0; --shift) {
    const int64_t batch = options.largest_batch >> shift;
    if (batch <= before) continue;
    RT_ASSIGN_OR_RETURN(MeasuredStep step, MeasureStep(model.get(), &weights, batch, options));
    *facts.add_step() = std::move(step.facts);
    facts.set_update_s(step.update_s);  // of the largest batch at last
    optimizer_s = step.optimizer_s;
    facts.set_step_deviation(step.deviation);
    facts.set_elementwise_update(Optimizer::UpdatesElementwise(loaded.config.optim()));
    before = batch;
  }
  const MeasuredUpdate update{.learning_rate = kLearningRate,
                              .grad_scale = 1 / static_cast<double>(options.largest_batch),
                              .optimizer_s = optimizer_s,
                              .first_step = kWarmUpSteps + options.steps,
                              .runs = options.steps};
  for (const double seconds : MeasurePreparation(loaded.config.optim(), update, optimizer.get())) {
    facts.add_prepare_s(seconds);
  }
  RT_ASSIGN_OR_RETURN(const double merge,
                      MeasureMerge(loaded.config.dist().local(), &arena, options.steps));
  facts.set_merge_s(merge);
  if (options.data != nullptr) {
    RT_ASSIGN_OR_RETURN(
        const LoadingCost cost,
        MeasureLoading(loaded.config, *options.data, options.image_size, options.ranks_here));
    facts.set_load_cpu_s(cost.load_s);
    facts.set_decode_cpu_s(cost.decode_s);
    facts.set_cached_share(cost.cached_share);
    facts.set_epochs(loaded.config.train().epochs());
  }
  RT_RETURN_IF_ERROR(
      MeasureSchemes(OwnCompression(loaded.config.dist()), options.schemes, arena, &facts));
  return facts;
}

}  // namespace ringtail
