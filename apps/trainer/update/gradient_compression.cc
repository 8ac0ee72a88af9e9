#include "apps/trainer/update/gradient_compression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "apps/trainer/update/compression_ways.h"
#include "core/logging.h"
#include "core/storage/crc32c.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr double kMega = 1e6;
constexpr size_t kNamesShown = 3;

std::string DescriptionOf(const LayerScheme& scheme) {
  if (scheme.codec != nullptr) return scheme.codec->Describe();
  return scheme.sketch != nullptr ? scheme.sketch->Describe() : scheme.name;
}

// A checkpoint that was written after a rank was lost has the weights alone.
void WarnOfLoss(const GradientCompression::Saved& saved, std::span<const LayerScheme> schemes) {
  if (!saved.empty() || saved.ways.size() != schemes.size()) return;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const bool remembered =
        schemes[i].memory == MemoryKind::kMomentum ||
        (schemes[i].memory != MemoryKind::kNone && saved.ways[i] != LetterOf(LayerWay::kDense));
    if (!remembered) continue;
    return LogWarning(
        "what the ranks had not sent yet, and momentum that they kept, was lost with one of them: "
        "this run goes on without");
  }
}

}  // namespace

StatusOr<std::unique_ptr<GradientCompression>> GradientCompression::Create(
    TrainingWorld* world, const ParameterArena* arena, const CompressionConfig& config,
    const Options& options, const Saved& saved) {
  std::unique_ptr<GradientCompression> made;
  const bool needed_alone = FindDgc(config) != nullptr || !saved.empty();
  if (!CompressesAnything(config) || (world->alone() && !needed_alone)) return made;
  made.reset(new GradientCompression(world, arena, config));
  std::vector<LayerScheme> schemes =
      ChooseSchemes(config, arena->parameters(), static_cast<double>(options.global_batch));
  if (world->leads()) WarnOfLoss(saved, schemes);
  std::string begin;
  if (world->leads()) begin = (saved.empty() ? '-' : '+') + made->WaysOf(schemes, saved);
  RT_ASSIGN_OR_RETURN(begin, world->ShareText(std::move(begin)));
  const bool takes_over = begin.starts_with('+');
  made->ways_ = begin.substr(1);
  RT_RETURN_IF_ERROR(CheckWays(made->ways_, schemes)
                         .Annotate(saved.path.empty() ? "rank 0's checkpoint" : saved.path));
  made->Take(std::move(schemes), options, takes_over);
  if (takes_over) RT_RETURN_IF_ERROR(made->TakeOver(saved));
  RT_RETURN_IF_ERROR(made->FindWriters(options.directory));
  return made;
}

Status GradientCompression::TakeOver(const Saved& saved) {
  const auto distribute = [&](Communicator* ranks) {
    return saved.state.Distribute(ranks, compressor_.get());
  };
  RT_RETURN_IF_ERROR(world_->Run(distribute));
  const int rank = world_->rank(), size = world_->size();
  const PartReader reader{.needs =
                              [&](int reader, int from, int saved_world) {
                                return CompressionState::Needs(reader, size, from, saved_world);
                              },
                          .take =
                              [&](const SafetensorsFile& part, int from, int saved_world) {
                                return CompressionState::AddPart(part, from, saved_world, rank,
                                                                 size, compressor_.get());
                              }};
  RT_RETURN_IF_ERROR(ReadParts(world_, saved.parts, reader));
  return world_->Run([&](Communicator* ranks) { return compressor_->TakeOver(ranks); });
}

// Who writes what it has of its own by itself, and who cannot: said before the first step.
Status GradientCompression::FindWriters(const CheckpointDirectory* directory) {
  const auto own = CompressionState::Own(compressor_.get(), world_->rank());
  if (world_->alone() || own.empty()) return OkStatus();
  RT_ASSIGN_OR_RETURN(parts_, PartExchange::Create(world_, directory));
  if (parts_ == nullptr) return OkStatus();
  int64_t bytes = 0;
  for (const TensorView& tensor : own) bytes += static_cast<int64_t>(tensor.data.size());
  RT_ASSIGN_OR_RETURN(part_bytes_, world_->Gather(bytes));
  if (parts_->blind().empty() || !world_->leads()) return OkStatus();
  LogWarning(
      fmt::format("{} of {} ranks do not see '{}' ({}): at every checkpoint rank 0 receives {:.1f} "
                  "MB from each "
                  "of them and writes it; a folder that all hosts share spares that",
                  parts_->blind().size(), world_->size(), directory->folder(),
                  world_->Describe(parts_->blind().front()), static_cast<double>(bytes) / kMega));
  return OkStatus();
}

// A run keeps what was chosen for it; a world of another size chooses anew.
std::string GradientCompression::WaysOf(std::span<const LayerScheme> schemes,
                                        const Saved& saved) const {
  if (saved.world == world_->size()) return saved.ways;
  if (world_->alone()) return std::string(schemes.size(), LetterOf(LayerWay::kDense));
  return ChooseWays(schemes);
}

// Layers of the same shape that are treated alike cost the same.
std::string GradientCompression::ChooseWays(std::span<const LayerScheme> schemes) const {
  std::map<std::tuple<std::string, int64_t, int64_t>, LayerWay> known;
  std::string ways;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const GradientShape shape = GradientShapeOf(arena_->parameters()[i].spec);
    const std::tuple key{DescriptionOf(schemes[i]), shape.rows, shape.columns};
    auto found = known.find(key);
    if (found == known.end()) found = known.emplace(key, Choose(schemes[i], shape)).first;
    ways += LetterOf(found->second);
  }
  return ways;
}

LayerWay GradientCompression::Choose(const LayerScheme& scheme, const GradientShape& shape) const {
  if (scheme.dense()) return LayerWay::kDense;
  const double seconds_per_byte = world_->seconds_per_byte();
  LayerCosts costs =
      CostsOf(scheme, shape, MeasureCoding(scheme, shape), world_->size(), seconds_per_byte);
  if (config_.fall_back() && Cheapest(costs) == LayerWay::kDense) return LayerWay::kDense;
  const LayerWay cheapest = CheapestCoded(costs);
  if (cheapest == LayerWay::kSketched) return cheapest;
  if (config_.route() == CompressionConfig::GATHER) return LayerWay::kGathered;
  if (config_.route() == CompressionConfig::SHARDED && scheme.can_shard()) {
    return LayerWay::kSharded;
  }
  return cheapest;
}

void GradientCompression::Take(std::vector<LayerScheme> schemes, const Options& options,
                               bool takes_over) {
  std::vector<GradientCompressor::Layer> layers;
  std::vector<std::string> left;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const LayerWay way = WayOf(ways_[i]);
    if (way == LayerWay::kDense && !schemes[i].dense()) {
      left.push_back(arena_->parameters()[i].spec.name);
      schemes[i] = {.name = "dense"};
    }
    layers.push_back({.scheme = std::move(schemes[i]), .sharded = way == LayerWay::kSharded});
  }
  GradientCompressor::Options compressor{.rank = world_->rank(),
                                         .world = world_->size(),
                                         .seed = options.seed,
                                         .dense_epochs = config_.dense_epochs(),
                                         .guard_every_steps = config_.guard_every_steps()};
  if (const DgcScheme* dgc = FindDgc(config_); dgc != nullptr) {
    compressor.keeps_momentum = true;
    compressor.momentum = {.momentum = static_cast<float>(dgc->momentum()),
                           .nesterov = dgc->nesterov()};
    if (dgc->clip_norm() > 0) {
      compressor.clip_norm = MomentumMemory::LocalNorm(
          dgc->clip_norm() * static_cast<double>(options.global_batch), world_->size());
    }
  }
  compressor_ = std::make_unique<GradientCompressor>(arena_, options.buckets, std::move(layers),
                                                     compressor, takes_over);
  Describe(left);
}

void GradientCompression::Describe(std::span<const std::string> left) {
  if (world_->alone()) {
    description_ =
        "one rank sends nothing; dist.compression only keeps momentum, and adds what was not sent "
        "before";
    return;
  }
  std::map<std::string, int> by_scheme;
  int64_t dense_bytes = 0, bytes = 0;
  for (size_t i = 0; i < ways_.size(); ++i) {
    const GradientShape shape = GradientShapeOf(arena_->parameters()[i].spec);
    const LayerScheme& scheme = compressor_->layers()[i].scheme;
    dense_bytes += ReceivedBytes(LayerWay::kDense, scheme, shape, world_->size());
    bytes += ReceivedBytes(WayOf(ways_[i]), scheme, shape, world_->size());
    if (!scheme.dense()) ++by_scheme[scheme.name];
  }
  std::vector<std::string> parts;
  parts.reserve(by_scheme.size());
  for (const auto& [scheme, layers] : by_scheme) {
    parts.push_back(fmt::format("{} for {} of {} gradients", scheme, layers, ways_.size()));
  }
  description_ = fmt::format(
      "{}: {:.2f} -> {:.2f} MB to each rank and step",
      parts.empty() ? "no gradient is compressed" : fmt::format("{}", fmt::join(parts, ", ")),
      static_cast<double>(dense_bytes) / kMega, static_cast<double>(bytes) / kMega);
  if (left.empty()) return;
  const size_t shown = std::min(left.size(), kNamesShown);
  description_ += fmt::format(
      "; {} stay{} as they are, because encoding takes longer than what it saves at {:.2f} GB/s: "
      "{}{}",
      left.size(), left.size() == 1 ? "s" : "", 1e-9 / world_->seconds_per_byte(),
      fmt::join(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < left.size() ? " ..." : "");
}

void GradientCompression::BeginStep(int64_t step, double epoch, int64_t batches) {
  compressor_->BeginStep(step, epoch, batches);
}

CodingTimes GradientCompression::EndStep(int64_t step) {
  compressor_->EndStep();
  for (const DirectionReading& reading : compressor_->TakeReadings()) {
    if (!world_->leads()) continue;
    const std::string& name = arena_->parameters()[reading.parameter].spec.name;
    const std::string text = fmt::format(
        "step {}: {} as compressed and as it is: cosine {:.3f}, unsent {:.2f} times "
        "its norm",
        step, name, reading.cosine, reading.unsent);
    if (reading.cosine < config_.guard_min_cosine()) {
      LogWarning(text + "; its direction is lost: give it another scheme (dist.compression.rule)");
    } else {
      LogInfo(text);
    }
  }
  return compressor_->TakeTimes();
}

void GradientCompression::Forget() {
  compressor_->EndStep();
  for (const GradientCompressor::StateBlock& block : compressor_->state()) {
    std::ranges::fill(block.values, 0.0F);
  }
  compressor_->TakeReadings();  // of a step that does not count
  compressor_->TakeTimes();
}

StatusOr<WrittenParts> GradientCompression::WriteParts(int64_t step,
                                                       const CheckpointDirectory* directory) {
  if (parts_ == nullptr) return WrittenParts{};
  return parts_->Write(step, CompressionState::Own(compressor_.get(), world_->rank()), directory);
}

std::vector<TensorView> GradientCompression::Tensors() const {
  if (compressor_->in_step()) return {};
  std::vector<TensorView> tensors = CompressionState::Shared(compressor_.get());
  if (!world_->alone()) return tensors;
  for (TensorView& own : CompressionState::Own(compressor_.get(), 0)) {
    tensors.push_back(std::move(own));
  }
  return tensors;
}

uint32_t GradientCompression::Checksum(uint32_t previous) const {
  for (const GradientCompressor::StateBlock& block : compressor_->state()) {
    if (!block.own) previous = Crc32c(std::as_bytes(block.values), previous);
  }
  return previous;
}

void GradientCompression::AddMetadata(std::map<std::string, std::string>* metadata) const {
  (*metadata)[kWaysKey] = WaysText({world_->size(), ways_});
}

StatusOr<GradientCompression::Saved> GradientCompression::Read(const Checkpoint& checkpoint) {
  Saved saved{.path = checkpoint.path};
  const auto found = checkpoint.file.metadata().find(kWaysKey);
  if (found != checkpoint.file.metadata().end()) {
    auto ways = ParseWays(found->second);
    RT_RETURN_IF_ERROR(ways.status().Annotate(checkpoint.path));
    saved.world = ways->world;
    saved.ways = std::move(ways->letters);
  }
  auto state = CompressionState::Read(checkpoint.file);
  RT_RETURN_IF_ERROR(state.status().Annotate(checkpoint.path));
  saved.state = *std::move(state);
  saved.parts = PartsOf(checkpoint);
  return saved;
}

}  // namespace ringtail
