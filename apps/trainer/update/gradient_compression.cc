#include "apps/trainer/update/gradient_compression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/logging.h"
#include "core/storage/crc32c.h"
#include "core/units.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr size_t kNamesShown = 3;

std::string DescriptionOf(const LayerScheme& scheme) {
  if (scheme.codec != nullptr) return scheme.codec->Describe();
  return scheme.sketch != nullptr ? scheme.sketch->Describe() : scheme.name;
}

// A checkpoint that was written after a rank was lost has only the weights.
void WarnOfLoss(const GradientCompression::Saved& saved, std::span<const LayerScheme> schemes) {
  if (!saved.empty() || saved.in_memory != nullptr || saved.routes.letters.size() != schemes.size())
    return;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const bool remembered = schemes[i].memory == MemoryKind::kMomentum ||
                            (schemes[i].memory != MemoryKind::kNone &&
                             saved.routes.letters[i] != LetterOf(LayerRoute::kDense));
    if (!remembered) continue;
    return LogWarning(
        "the gradients that the ranks had not sent yet, and the momentum that they kept, were lost "
        "with one of them: this run continues without");
  }
}

// Parameters that are frozen, but may train later.
std::span<const Parameter> FrozenOf(const ParameterArena& arena) {
  const auto buffers = std::ranges::find(arena.fixed(), true, &Parameter::is_buffer);
  return arena.fixed().first(static_cast<size_t>(buffers - arena.fixed().begin()));
}

// Those that are in memory, by name; empty unless there is one for each parameter.
std::string HandedRoutes(const HandOver* in_memory, std::span<const Parameter> parameters) {
  std::string routes;
  for (const Parameter& p : parameters) {
    if (in_memory == nullptr || !in_memory->routes.contains(p.spec.name)) return "";
    routes += in_memory->routes.at(p.spec.name);
  }
  return routes;
}

}  // namespace

StatusOr<std::unique_ptr<GradientCompression>> GradientCompression::Create(
    TrainingWorld* world, const ParameterArena* arena, const CompressionConfig& config,
    const Options& options, const Saved& saved) {
  std::unique_ptr<GradientCompression> made;
  const bool needed_alone = FindDgc(config) != nullptr || !saved.empty();
  if (!CompressesAnything(config) || (world->alone() && !needed_alone)) return made;
  made.reset(new GradientCompression(world, arena, config, options.per_rank));
  const auto samples = static_cast<double>(options.global_batch);
  std::vector<LayerScheme> schemes = ChooseSchemes(config, arena->replicated(), samples), frozen;
  if (options.thaws) frozen = ChooseSchemes(config, FrozenOf(*arena), samples);
  const bool reads = world->rank() == saved.source_rank;
  if (reads) WarnOfLoss(saved, schemes);
  std::string decision;  // of rank 0: whether there is state to restore, and the routes
  if (reads) {
    decision = (saved.empty() ? '-' : '+') + RoutesText(made->RoutesOf(schemes, frozen, saved));
  }
  RT_ASSIGN_OR_RETURN(decision, world->ShareText(std::move(decision), saved.source_rank));
  const bool carries_over = decision.starts_with('+');
  RT_ASSIGN_OR_RETURN(const SavedRoutes routes, ParseRoutes(decision.substr(1)));
  made->routes_ = routes.letters;
  made->frozen_routes_ = routes.frozen;
  const std::string source = saved.path.empty() ? "rank 0's checkpoint" : saved.path;
  RT_RETURN_IF_ERROR(CheckRoutes(made->routes_, schemes).Annotate(source));
  RT_RETURN_IF_ERROR(CheckRoutes(made->frozen_routes_, frozen).Annotate(source));
  made->MakeReducer(std::move(schemes), options, carries_over);
  if (carries_over) RT_RETURN_IF_ERROR(made->Restore(saved, options.per_rank));
  RT_RETURN_IF_ERROR(made->FindWriters(options.directory));
  return made;
}

Status GradientCompression::Restore(const Saved& saved, bool per_rank) {
  if (saved.in_memory == nullptr) {
    RT_RETURN_IF_ERROR(ReadState(saved));
    if (per_rank) RT_RETURN_IF_ERROR(FitToWorld(saved));
  } else {
    for (const auto& [name, values] : StateByParameter()) {
      const auto kept = saved.in_memory->kept.find(name);
      if (kept != saved.in_memory->kept.end()) std::ranges::copy(kept->second, values.begin());
    }
  }
  return world_->Run([&](Communicator* ranks) { return reducer_->StartCarryOver(ranks); });
}

Status GradientCompression::ReadState(const Saved& saved) {
  const std::vector<StateBlock> blocks = reducer_->state();
  const auto distribute = [&](Communicator* ranks) {
    return saved.state.Distribute(ranks, saved.source_rank, blocks);
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
                                                                 size, blocks);
                              }};
  return ReadParts(world_, saved.parts, saved.source_rank, reader);
}

std::map<std::string, std::span<float>> GradientCompression::StateByParameter() const {
  std::map<std::string, std::span<float>> slots;
  for (const StateBlock& block : reducer_->state()) {
    if (block.name.starts_with(StateBlock::kSketch)) {
      slots[block.name] = block.values;
      continue;
    }
    for (const Parameter& p : arena_->replicated()) {
      slots[block.name + "." + p.spec.name] = block.values.subspan(p.offset, p.elements);
    }
  }
  return slots;
}

void GradientCompression::HandOverTo(HandOver* next) const {
  const std::span<const Parameter> frozen = FrozenOf(*arena_);
  for (size_t i = 0; i < routes_.size(); ++i) {
    next->routes[arena_->parameters()[i].spec.name] = routes_[i];
  }
  for (size_t i = 0; i < frozen_routes_.size(); ++i) {
    next->routes[frozen[i].spec.name] = frozen_routes_[i];
  }
  for (const auto& [name, values] : StateByParameter()) {
    next->kept[name].assign(values.begin(), values.end());
  }
}

Status GradientCompression::FitToWorld(const Saved& saved) {
  RT_ASSIGN_OR_RETURN(const std::vector<int64_t> before,
                      world_->ShareNumbers({saved.routes.world}, saved.source_rank));
  if (before[0] == 0 || before[0] == world_->size()) return OkStatus();
  const float ratio = static_cast<float>(world_->size()) / static_cast<float>(before[0]);
  for (const StateBlock& block : reducer_->state()) {
    if (!block.own) continue;
    for (float& value : block.values) value *= ratio;
  }
  return OkStatus();
}

// Which ranks write their own state themselves, and which cannot: said before the first step.
Status GradientCompression::FindWriters(const CheckpointDirectory* directory) {
  const std::vector<TensorView> own = OwnTensors();
  if (world_->alone() || own.empty()) return OkStatus();
  RT_ASSIGN_OR_RETURN(parts_, PartExchange::Create(world_, directory));
  if (parts_ == nullptr) return OkStatus();
  RT_ASSIGN_OR_RETURN(part_bytes_, world_->Gather(BytesOf(own)));
  WarnOfBlindRanks(*parts_, *world_, directory, part_bytes_.back());
  return OkStatus();
}

// A run keeps its routes; a world of another size chooses again.
SavedRoutes GradientCompression::RoutesOf(std::span<const LayerScheme> schemes,
                                          std::span<const LayerScheme> frozen,
                                          const Saved& saved) const {
  const bool keeps = saved.routes.world == world_->size();
  SavedRoutes routes{.world = world_->size()};
  const std::string known =
      keeps ? saved.routes.letters : HandedRoutes(saved.in_memory, arena_->replicated());
  const bool chooses = !keeps && known.empty();
  routes.letters = chooses ? ChooseRoutes(arena_->replicated(), schemes) : known;
  if (frozen.empty()) return routes;
  if (keeps) routes.frozen = saved.routes.frozen;  // older checkpoints have none
  if (routes.frozen.empty()) routes.frozen = ChooseRoutes(FrozenOf(*arena_), frozen);
  return routes;
}

// Layers of the same shape and scheme cost the same.
std::string GradientCompression::ChooseRoutes(std::span<const Parameter> parameters,
                                              std::span<const LayerScheme> schemes) const {
  if (world_->alone()) return std::string(schemes.size(), LetterOf(LayerRoute::kDense));
  std::map<std::tuple<std::string, int64_t, int64_t, int64_t>, LayerRoute> known;
  std::string routes;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const GradientShape shape = GradientShapeOf(parameters[i].spec);
    const std::tuple key{DescriptionOf(schemes[i]), schemes[i].every_steps, shape.rows,
                         shape.columns};
    auto found = known.find(key);
    if (found == known.end()) found = known.emplace(key, ChooseRoute(schemes[i], shape)).first;
    routes += LetterOf(found->second);
  }
  return routes;
}

LayerRoute GradientCompression::ChooseRoute(const LayerScheme& scheme,
                                            const GradientShape& shape) const {
  if (scheme.dense()) return LayerRoute::kDense;
  const double seconds_per_byte = world_->seconds_per_byte();
  const LayerCosts costs =
      CostsOf(scheme, shape, MeasureCoding(scheme, shape), world_->size(), seconds_per_byte);
  return ringtail::ChooseRoute(config_, scheme, costs);
}

void GradientCompression::MakeReducer(std::vector<LayerScheme> schemes, const Options& options,
                                      bool carries_over) {
  std::vector<CompressedLayer> layers;
  std::vector<std::string> dense;
  for (size_t i = 0; i < schemes.size(); ++i) {
    const LayerRoute route = RouteOf(routes_[i]);
    if (route == LayerRoute::kDense && !schemes[i].dense()) {
      dense.push_back(arena_->parameters()[i].spec.name);
      schemes[i] = LayerScheme();
    }
    layers.push_back({.scheme = std::move(schemes[i]), .sharded = route == LayerRoute::kSharded});
  }
  CompressedReducer::Options reducer = ReducerOptions(config_, world_->rank(), world_->size(),
                                                      static_cast<double>(options.global_batch));
  reducer.seed = options.seed;
  reducer.memory.carries_over = carries_over;
  reducer_ =
      std::make_unique<CompressedReducer>(arena_, options.buckets, std::move(layers), reducer);
  Describe(dense);
}

void GradientCompression::Describe(std::span<const std::string> dense) {
  if (world_->alone()) {
    description_ =
        "one rank sends nothing; dist.compression only keeps momentum, and adds what was not sent "
        "before";
    return;
  }
  std::map<std::string, int> by_scheme;
  int64_t dense_bytes = 0, bytes = 0;
  for (size_t i = 0; i < routes_.size(); ++i) {
    const GradientShape shape = GradientShapeOf(arena_->parameters()[i].spec);
    const LayerScheme& scheme = reducer_->layers()[i].scheme;
    dense_bytes += ReceivedBytes(LayerRoute::kDense, scheme, shape, world_->size());
    bytes += ReceivedBytes(RouteOf(routes_[i]), scheme, shape, world_->size());
    if (!scheme.dense()) ++by_scheme[scheme.name];
  }
  std::vector<std::string> parts;
  parts.reserve(by_scheme.size());
  for (const auto& [scheme, layers] : by_scheme) {
    parts.push_back(fmt::format("{} for {} of {} gradients", scheme, layers, routes_.size()));
  }
  description_ = fmt::format(
      "{}: {:.2f} -> {:.2f} MB to each rank and {}",
      parts.empty() ? "no gradient is compressed" : fmt::format("{}", fmt::join(parts, ", ")),
      static_cast<double>(dense_bytes) / kMega, static_cast<double>(bytes) / kMega, unit_);
  if (dense.empty()) return;
  const size_t shown = std::min(dense.size(), kNamesShown);
  description_ += fmt::format(
      "; {} stay{} uncompressed, because encoding takes longer than it saves at {:.3g} MB/s: {}{}",
      dense.size(), dense.size() == 1 ? "s" : "", 1 / world_->seconds_per_byte() / kMega,
      fmt::join(dense.begin(), dense.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < dense.size() ? " ..." : "");
}

void GradientCompression::BeginStep(int64_t step, double epoch, int64_t batches) {
  reducer_->BeginStep(step, epoch, batches);
}

CodingTimes GradientCompression::EndStep(int64_t step) {
  reducer_->EndStep();
  for (const DirectionReading& reading : reducer_->TakeReadings()) {
    if (!world_->leads()) continue;
    const std::string& name = arena_->parameters()[reading.parameter].spec.name;
    const std::string text = fmt::format(
        "{} {}: {} compressed and uncompressed: cosine {:.3f}, residual {:.2f} times its norm",
        unit_, step, name, reading.cosine, reading.residual);
    if (reading.cosine < config_.guard_min_cosine()) {
      LogWarning(text + "; its direction is lost: give it another scheme (dist.compression.rule)");
    } else {
      LogInfo(text);
    }
  }
  return reducer_->TakeTimes();
}

void GradientCompression::Forget() {
  reducer_->EndStep();
  for (const StateBlock& block : reducer_->state()) {
    std::ranges::fill(block.values, 0.0F);
  }
  reducer_->TakeReadings();  // of the skipped step
  reducer_->TakeTimes();
}

StatusOr<WrittenParts> GradientCompression::WriteParts(int64_t step,
                                                       const CheckpointDirectory* directory) {
  if (parts_ == nullptr) return WrittenParts{};
  return parts_->Write(step, OwnTensors(), directory);
}

std::vector<TensorView> GradientCompression::OwnTensors() const {
  return CompressionState::Own(reducer_->state(), world_->rank());
}

std::vector<TensorView> GradientCompression::Tensors() const {
  if (reducer_->in_step()) return {};
  std::vector<TensorView> tensors = CompressionState::Shared(reducer_->state());
  if (!world_->alone()) return tensors;
  for (TensorView& own : CompressionState::Own(reducer_->state(), 0)) {
    tensors.push_back(std::move(own));
  }
  return tensors;
}

uint32_t GradientCompression::Checksum(uint32_t previous) const {
  for (const StateBlock& block : reducer_->state()) {
    if (!block.own) previous = Crc32c(std::as_bytes(block.values), previous);
  }
  return previous;
}

StatusOr<GradientCompression::Saved> GradientCompression::Read(const ResumePoint& point) {
  Saved saved{.path = point.path, .routes = point.compression, .source_rank = point.source_rank};
  if (point.in_memory) saved.in_memory = &*point.in_memory;
  if (!point.tensors) return saved;
  auto state = CompressionState::Read(*point.tensors);
  RT_RETURN_IF_ERROR(state.status().Annotate(point.path));
  saved.state = *std::move(state);
  saved.parts = point.parts;
  return saved;
}

}  // namespace ringtail
