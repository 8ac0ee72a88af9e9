#include "apps/config/run_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "apps/config/config_check.h"
#include "apps/config/run_precision.h"
#include "apps/config/shipped_configs.h"
#include "core/config/config_override.h"
#include "core/config/message_checks.h"
#include "core/text/counted.h"
#include "core/text/printable.h"
#include "data/config_check.h"
#include "dist/compression/scheme_choice.h"
#include "dist/config_check.h"
#include "dist/parameter_server/rule_choice.h"
#include "layers/net/graph.h"
#include "layers/net/precision.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "optim/schedule_validation.h"

namespace ringtail {
namespace {

Status ValidateOptimConfig(const OptimConfig& config, const ConfigSource& source) {
  RT_RETURN_IF_ERROR(ValidateSchedule(config, &source));
  // Each rule checks its config when it is created; an empty arena suffices for that.
  RT_ASSIGN_OR_RETURN(const auto nothing, ParameterArena::Create({}, {}));
  return Optimizer::Create(config, nothing.get(), {.bf16_products = false, .source = &source})
      .status();
}

// Momentum that is applied twice ruins a run without any error.
Status ValidateMomentum(const RunConfig& config, const ConfigSource& source) {
  if (FindDgc(config.dist().compression()) == nullptr) return OkStatus();
  const OptimConfig& optim = config.optim();
  // The default rule is sgd (Optimizer::Create) with the default momentum.
  const bool sgd = optim.has_sgd() || optim.rule_case() == OptimConfig::RULE_NOT_SET;
  if (sgd && optim.sgd().momentum() == 0) return OkStatus();
  return source.Error("dist.compression",
                      "dgc keeps the momentum itself (dgc { momentum: 0.9 }): the optimizer must "
                      "be sgd with momentum: 0, at a learning_rate for sgd");
}

// The bound of clipping is for sums over a fixed number of samples.
Status ValidateClippingBeforeGrowth(const RunConfig& config, const ConfigSource& source) {
  const DgcScheme* dgc = FindDgc(config.dist().compression());
  if (dgc == nullptr || dgc->clip_norm() == 0 || !config.optim().has_batch_growth()) {
    return OkStatus();
  }
  return source.Error("dist.compression",
                      "dgc with a clip_norm does not know of a batch that grows: set clip_norm to "
                      "0, or leave optim.batch_growth away");
}

// Where the exchange between ranks has a state of its own for each weight, what trains is fixed.
Status ValidateFreezing(const RunConfig& config, const ConfigSource& source) {
  const TrainConfig& train = config.train();
  if (!train.freeze().empty() && UsesServers(config.dist().asynchronous())) {
    return source.Error("train.freeze",
                        "servers that hold the weights (dist.asynchronous) know no "
                        "frozen layers; leave train.freeze out, or dist.asynchronous");
  }
  if (train.freeze_epochs() == 0) return OkStatus();
  if (train.freeze().empty()) {
    return source.Error("train.freeze_epochs",
                        "nothing is frozen: name layers with train.freeze, or all-but-head");
  }
  if (UsesLocalRounds(config.dist())) {
    return source.Error("train.freeze_epochs",
                        "ranks that take steps of their own (dist.local) cannot unfreeze layers: "
                        "leave freeze_epochs out, or dist.local");
  }
  if (FindDgc(config.dist().compression()) != nullptr) {
    return source.Error("train.freeze_epochs",
                        "dgc keeps the momentum of layers, which ends where others are unfrozen: "
                        "leave freeze_epochs out, or take top_k");
  }
  return OkStatus();
}

// Rounds that were to begin after the last step would never begin, and the run would not say so.
Status ValidateStartOfRounds(const RunConfig& config, const ConfigSource& source) {
  const double start = config.dist().local().start_epoch(), epochs = config.train().epochs();
  if (!UsesLocalRounds(config.dist()) || start < epochs) return OkStatus();
  return source.Error("dist.local.start_epoch",
                      fmt::format("start_epoch is {}, but the run ends after {} (train.epochs), "
                                  "before any round: set it lower, or leave out dist.local",
                                  start, Counted(epochs, "epoch")));
}

Status ValidateRanges(const LoadedConfig& loaded) {
  const RunConfig& config = loaded.config;
  const ConfigSource& source = loaded.source;
  if (config.net().layer().empty()) {
    return source.Error("net", "the network has no layers; give it some: net { layer { ... } }");
  }
  if (Printable(config.net().name()) != config.net().name()) {
    return source.Error("net.name", "the name of the network has unprintable characters");
  }
  RT_RETURN_IF_ERROR(CheckFinite(config, &source, ""));
  RT_RETURN_IF_ERROR(ValidateTrainConfig(config, source));
  RT_RETURN_IF_ERROR(ValidateDataConfig(config.data(), &source, "data"));
  RT_RETURN_IF_ERROR(ValidateDistConfig(config.dist(), &source));
  RT_RETURN_IF_ERROR(ValidateMomentum(config, source));
  RT_RETURN_IF_ERROR(ValidateClippingBeforeGrowth(config, source));
  RT_RETURN_IF_ERROR(ValidateFreezing(config, source));
  RT_RETURN_IF_ERROR(ValidateStartOfRounds(config, source));
  return ValidateOptimConfig(config.optim(), source);
}

// The last parameter whose shape differs between `model` and `other`, in both: it depends on the
// image size.
std::optional<std::pair<ParameterSpec, ParameterSpec>> FirstOfOtherShape(const Model& model,
                                                                         const Model& other) {
  for (int i = model.graph().size() - 1; i >= 0; --i) {
    for (size_t j = 0; j < model.parameters(i).size(); ++j) {
      const ParameterSpec &one = model.parameters(i)[j]->spec, &two = other.parameters(i)[j]->spec;
      if (one.WholeShape() != two.WholeShape()) return std::pair(one, two);
    }
  }
  return std::nullopt;
}

Status CheckFits(const LoadedConfig& loaded, const Model& model, int64_t image_size,
                 std::string_view field) {
  RT_ASSIGN_OR_RETURN(const auto resized,
                      Model::Create(loaded.config.net(), image_size, &loaded.source, "net",
                                    /*allocate=*/false));
  const Model& whole = model.whole() != nullptr ? *model.whole() : model;
  const auto differs = FirstOfOtherShape(whole, *resized);
  if (!differs) return OkStatus();
  return loaded.source.Error(
      field, fmt::format("for images of {} pixels '{}' would have the shape {} instead of {}; end "
                         "the convolutions with global_average_pool, or train at one size",
                         image_size, differs->first.name, ShapeString(differs->second.WholeShape()),
                         ShapeString(differs->first.WholeShape())));
}

StatusOr<LoadedConfig> Finish(LoadedConfig loaded, std::span<const std::string> overrides) {
  for (const std::string& assignment : overrides) {
    RT_RETURN_IF_ERROR(ApplyOverride(assignment, &loaded.config, &loaded.source));
  }
  RT_RETURN_IF_ERROR(ValidateRanges(loaded));
  return loaded;
}

}  // namespace

StatusOr<LoadedConfig> LoadRunConfig(const std::string& config,
                                     std::span<const std::string> overrides) {
  RT_ASSIGN_OR_RETURN(const ConfigChoice choice,
                      ChooseConfig(config.empty() ? std::string(kDefaultConfig) : config));
  if (choice.shipped != nullptr) {
    return ParseRunConfig(choice.shipped->text, ShippedFileName(*choice.shipped), overrides);
  }
  LoadedConfig loaded;
  const Status read = ReadTextConfig(choice.path, &loaded.config, &loaded.source);
  if (!read.ok()) return InvalidArgument(read.message());  // a wrong path is a wrong flag
  return Finish(std::move(loaded), overrides);
}

StatusOr<LoadedConfig> ParseRunConfig(std::string_view text, std::string_view name,
                                      std::span<const std::string> overrides) {
  LoadedConfig loaded;
  RT_RETURN_IF_ERROR(ParseTextConfig(text, name, &loaded.config, &loaded.source));
  return Finish(std::move(loaded), overrides);
}

StatusOr<std::unique_ptr<Model>> CreateModelAt(int64_t image_size, const LoadedConfig& loaded,
                                               bool allocate, bool freeze,
                                               const ShardRequest& shards,
                                               const StageRequest& stage) {
  const TrainConfig& train = loaded.config.train();
  std::vector<std::string> frozen;
  if (freeze) frozen.assign(train.freeze().begin(), train.freeze().end());
  RT_ASSIGN_OR_RETURN(
      auto model, Model::Create(loaded.config.net(), image_size, &loaded.source, "net", allocate,
                                {.layers = frozen, .field = "train.freeze"}, shards, stage));
  model->set_blob_type(BlobTypeOf(PrecisionOf(train)));
  return model;
}

StatusOr<std::unique_ptr<Model>> CreateModel(const LoadedConfig& loaded, bool allocate, bool freeze,
                                             const ShardRequest& shards,
                                             const StageRequest& stage) {
  const RunConfig& config = loaded.config;
  RT_ASSIGN_OR_RETURN(auto model, CreateModelAt(TrainingImageSizes(config).front(), loaded,
                                                allocate, freeze, shards, stage));
  for (int i = 0; i < config.train().phase_size(); ++i) {
    RT_RETURN_IF_ERROR(CheckFits(loaded, *model, config.train().phase(i).image_size(),
                                 fmt::format("train.phase[{}].image_size", i)));
  }
  for (const int64_t size : TrainingImageSizes(config)) {
    RT_RETURN_IF_ERROR(CheckFits(loaded, *model, EvaluationImageSize(config, size),
                                 config.train().evaluation_image_size() > 0
                                     ? "train.evaluation_image_size"
                                     : "train.evaluation_image_scale"));
  }
  return model;
}

std::vector<int64_t> TrainingImageSizes(const RunConfig& config) {
  const auto& phases = config.train().phase();
  std::vector<int64_t> sizes;
  if (phases.empty() || phases[0].from_epoch() > 0) sizes.push_back(config.data().image_size());
  for (const PhaseConfig& phase : phases) sizes.push_back(phase.image_size());
  return sizes;
}

int64_t EvaluationImageSize(const RunConfig& config, int64_t training_size) {
  const int64_t fixed = config.train().evaluation_image_size();
  if (fixed > 0) return fixed;
  return std::llround(config.train().evaluation_image_scale() * static_cast<double>(training_size));
}

int64_t PartBatch(const RunConfig& config) {
  return config.train().batch() / config.train().accumulation();
}

int64_t EvaluationBatch(const RunConfig& config) {
  const int64_t asked = config.train().evaluation_batch();
  return asked > 0 ? asked : PartBatch(config);
}

}  // namespace ringtail
