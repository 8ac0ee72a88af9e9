#include "dist/compression/schemes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/config/nearest_name.h"
#include "core/config/text_config.h"
#include "dist/compression/codecs/cast_codec.h"
#include "dist/compression/codecs/dgc_codec.h"
#include "dist/compression/codecs/important_filters_codec.h"
#include "dist/compression/codecs/linear_codec.h"
#include "dist/compression/codecs/one_bit_codec.h"
#include "dist/compression/codecs/qsgd_codec.h"
#include "dist/compression/codecs/sign_codec.h"
#include "dist/compression/codecs/terngrad_codec.h"
#include "dist/compression/codecs/top_k_codec.h"
#include "dist/compression/codecs/two_bit_codec.h"
#include "dist/compression/sketches/power_sgd_sketch.h"
#include "dist/compression/sketches/random_k_sketch.h"

namespace ringtail {
namespace {

using Message = CompressionScheme;
using CodecPointer = std::unique_ptr<Codec>;
using SketchPointer = std::unique_ptr<Sketch>;

constexpr int kMostLevels = 127, kMostRank = 32;
constexpr double kLeastRate = 1e-6;
constexpr double kLeastThreshold = 1e-30;                     // ToScale makes 0 of less than 2^-100
constexpr double kDgcWarmUp[] = {0.25, 0.063, 0.015, 0.004};  // densities of the first epochs

ValueFormat FormatOf(SparseValues::Format values) {
  switch (values) {
    case SparseValues::F16:
      return ValueFormat::kHalf;
    case SparseValues::BF16:
      return ValueFormat::kBfloat16;
    case SparseValues::LEVELS4:
      return ValueFormat::kLevels4;
    case SparseValues::LEVELS8:
      return ValueFormat::kLevels8;
    case SparseValues::F32:
      break;
  }
  return ValueFormat::kFloat;
}

// The densities of warm-up that are above the final one, and then that.
DgcOptions OptionsOf(const DgcScheme& scheme) {
  DgcOptions options{.densities = {}, .values = FormatOf(scheme.values())};
  for (const double density : kDgcWarmUp) {
    if (scheme.warm_up() && density > scheme.density()) options.densities.push_back(density);
  }
  options.densities.push_back(scheme.density());
  return options;
}

Status CheckTwoBit(const TwoBitScheme& scheme, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.NotNegative("threshold", scheme.threshold()));
  if (scheme.threshold() > 0 && scheme.threshold() < kLeastThreshold) {
    return check.Error("threshold", fmt::format("threshold is {:g}; it must be at least {:g}, or 0",
                                                scheme.threshold(), kLeastThreshold));
  }
  return check.Positive("factor", scheme.factor());
}

Status CheckDgc(const DgcScheme& scheme, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.PositiveFraction("density", scheme.density()));
  RT_RETURN_IF_ERROR(check.FractionBelowOne("momentum", scheme.momentum()));
  return check.NotNegative("clip_norm", scheme.clip_norm());
}

Status CheckFilters(const ImportantFiltersScheme& scheme, const FieldCheck& check) {
  RT_RETURN_IF_ERROR(check.PositiveFraction("max_rate", scheme.max_rate()));
  RT_RETURN_IF_ERROR(check.Between("min_rate", scheme.min_rate(), kLeastRate, scheme.max_rate()));
  RT_RETURN_IF_ERROR(check.NotNegative("power", scheme.power()));
  RT_RETURN_IF_ERROR(check.Positive("theta", static_cast<double>(scheme.theta())));
  return check.NotNegative("warmup_epochs", scheme.warmup_epochs());
}

// To add a scheme: README.md, "Add a codec".
const std::vector<Scheme>& Table() {
  static const std::vector<Scheme> table = {
      {.kind = Message::kDense},
      {.kind = Message::kBf16,  // loses so little that a memory would cost more than it is worth
       .presets = {{"bf16", "", "cast to bfloat16"}},
       .make_codec = [](const Message&, const SchemeRun&) -> CodecPointer {
         return std::make_unique<CastCodec>(CastOptions{.format = CastFormat::kBf16});
       }},
      {.kind = Message::kFp16,
       .presets = {{"fp16", "", "cast to half precision of the gradient's mean over samples"}},
       .make_codec = [](const Message&, const SchemeRun& run) -> CodecPointer {
         return std::make_unique<CastCodec>(
             CastOptions{.format = CastFormat::kFp16, .samples = run.samples});
       }},
      {.kind = Message::kLinear8,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"linear8", "", "8 bits, a scale for each 1024 elements"}},
       .make_codec = [](const Message&, const SchemeRun&) -> CodecPointer {
         return std::make_unique<LinearCodec>(LinearOptions{.bits = 8});
       }},
      {.kind = Message::kLinear4,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"linear4", "", "4 bits, a scale for each 128 elements"}},
       .make_codec = [](const Message&, const SchemeRun&) -> CodecPointer {
         return std::make_unique<LinearCodec>(LinearOptions{.bits = 4});
       }},
      {.kind = Message::kQsgd,
       .presets = {{"qsgd8", "levels: 127", "QSGD with 127 levels at random"},
                   {"qsgd4", "levels: 7", "QSGD with 7 levels at random"}},
       .check =
           [](const Message& scheme, const FieldCheck& check) {
             return check.Between("levels", scheme.qsgd().levels(), 1, kMostLevels);
           },
       .make_codec = [](const Message& scheme, const SchemeRun&) -> CodecPointer {
         return std::make_unique<QsgdCodec>(QsgdOptions{.levels = scheme.qsgd().levels()});
       }},
      {.kind = Message::kTerngrad,
       .presets = {{"terngrad", "", "-s, 0 or s at random, clipped at 2.5 sigma"}},
       .make_codec = [](const Message&, const SchemeRun&) -> CodecPointer {
         return std::make_unique<TernGradCodec>(TernGradOptions{});
       }},
      {.kind = Message::kTwoBit,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"two_bit", "", "+-mean|g| or nothing"},
                   {"two_bit_fixed", "threshold: 0.5", "+-0.5 or nothing, as MXNet does"}},
       .check = [](const Message& scheme,
                   const FieldCheck& check) { return CheckTwoBit(scheme.two_bit(), check); },
       .make_codec = [](const Message& scheme, const SchemeRun&) -> CodecPointer {
         return std::make_unique<TwoBitCodec>(TwoBitOptions{
             .threshold = scheme.two_bit().threshold(), .factor = scheme.two_bit().factor()});
       }},
      {.kind = Message::kOneBit,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"one_bit", "", "signs, the two means of each 512 elements"}},
       .make_codec = [](const Message&, const SchemeRun&) -> CodecPointer {
         return std::make_unique<OneBitCodec>();
       }},
      {.kind = Message::kSign,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"sign", "", "signs times mean|g|"},
                   {"sign_vote", "majority_vote: true", "signs, of which the majority decides"}},
       .make_codec = [](const Message& scheme, const SchemeRun&) -> CodecPointer {
         return std::make_unique<SignCodec>(
             SignOptions{.majority_vote = scheme.sign().majority_vote()});
       }},
      {.kind = Message::kTopK,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"top_k", "", "the largest 1 %"},
                   {"top_k_thousandth", "density: 0.001 values: LEVELS4",
                    "the largest 0.1 % in 15 bits each, of which 12 say where"}},
       .check =
           [](const Message& scheme, const FieldCheck& check) {
             RT_RETURN_IF_ERROR(check.PositiveFraction("density", scheme.top_k().density()));
             return check.Fraction("sum_density", scheme.top_k().sum_density());
           },
       .make_codec = [](const Message& scheme, const SchemeRun&) -> CodecPointer {
         return std::make_unique<TopKCodec>(
             TopKOptions{.density = scheme.top_k().density(),
                         .sum_density = scheme.top_k().sum_density(),
                         .values = FormatOf(scheme.top_k().values())});
       }},
      {.kind = Message::kDgc,
       .memory = MemoryKind::kMomentum,
       .presets = {{"dgc", "warm_up: false",
                    "the largest 0.1 %, as Deep Gradient Compression finds them"}},
       .check = [](const Message& scheme,
                   const FieldCheck& check) { return CheckDgc(scheme.dgc(), check); },
       .make_codec = [](const Message& scheme, const SchemeRun&) -> CodecPointer {
         return std::make_unique<DgcCodec>(OptionsOf(scheme.dgc()));
       }},
      {.kind = Message::kImportantFilters,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"important_filters", "", "Hylo's most important filters"}},
       .check =
           [](const Message& scheme, const FieldCheck& check) {
             return CheckFilters(scheme.important_filters(), check);
           },
       .make_codec = [](const Message& scheme, const SchemeRun&) -> CodecPointer {
         const ImportantFiltersScheme& filters = scheme.important_filters();
         return std::make_unique<ImportantFiltersCodec>(
             ImportantFiltersOptions{.max_rate = filters.max_rate(),
                                     .min_rate = filters.min_rate(),
                                     .power = filters.power(),
                                     .theta = static_cast<double>(filters.theta()),
                                     .warmup_epochs = filters.warmup_epochs()});
       }},
      {.kind = Message::kRandomK,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"random_k", "", "1 % at random places"}},
       .check =
           [](const Message& scheme, const FieldCheck& check) {
             return check.PositiveFraction("density", scheme.random_k().density());
           },
       .make_sketch = [](const Message& scheme, const GradientShape& shape) -> SketchPointer {
         return std::make_unique<RandomKSketch>(
             RandomKOptions{.density = scheme.random_k().density()}, shape);
       }},
      {.kind = Message::kPowerSgd,
       .memory = MemoryKind::kErrorFeedback,
       .presets = {{"power_sgd", "", "rank 2, the first step"}},
       .check =
           [](const Message& scheme, const FieldCheck& check) {
             return check.Between("rank", scheme.power_sgd().rank(), 1, kMostRank);
           },
       .make_sketch = [](const Message& scheme, const GradientShape& shape) -> SketchPointer {
         return std::make_unique<PowerSgdSketch>(PowerSgdOptions{.rank = scheme.power_sgd().rank()},
                                                 shape);
       },
       .worthwhile =
           [](const Message& scheme, const GradientShape& shape) {
             return PowerSgdSketch::Worthwhile(shape, scheme.power_sgd().rank());
           }},
      {.kind = Message::kHylo,
       .check = [](const Message& scheme, const FieldCheck& check) -> Status {
         RT_RETURN_IF_ERROR(CheckFilters(scheme.hylo().convolution(), check.Within("convolution")));
         return CheckTwoBit(scheme.hylo().linear(), check.Within("linear"));
       },
       .make_scheme =
           [](const Message& scheme, ParameterKind kind) {
             Message made;
             if (kind == ParameterKind::kLinearWeight) {
               *made.mutable_two_bit() = scheme.hylo().linear();
             } else {
               *made.mutable_important_filters() = scheme.hylo().convolution();
             }
             return made;
           }},
  };
  return table;
}

template <typename Wanted>
std::vector<SchemePreset> PresetsOf(const Wanted& wanted) {
  std::vector<SchemePreset> presets;
  for (const Scheme& scheme : Table()) {
    if (wanted(scheme)) {
      presets.insert(presets.end(), scheme.presets.begin(), scheme.presets.end());
    }
  }
  return presets;
}

}  // namespace

std::string Scheme::name() const {
  const auto* const field = CompressionScheme::descriptor()->FindFieldByNumber(kind);
  RT_CHECK(field != nullptr, "a row belongs to a field of CompressionScheme");
  return field->name();
}

std::span<const Scheme> Schemes() { return Table(); }

const Scheme& SchemeOf(CompressionScheme::KindCase kind) {
  if (kind == Message::KIND_NOT_SET) kind = Message::kDense;
  const auto row = std::ranges::find(Table(), kind, &Scheme::kind);
  RT_CHECK(row != Table().end(), "every kind of CompressionScheme has a row");
  return *row;
}

Status CheckScheme(const CompressionScheme& scheme, const FieldCheck& check) {
  const Scheme& row = SchemeOf(scheme.kind_case());
  return row.check != nullptr ? row.check(scheme, check.Within(row.name())) : OkStatus();
}

bool IsWorthwhile(const CompressionScheme& scheme, const GradientShape& shape) {
  const Scheme& row = SchemeOf(scheme.kind_case());
  return row.worthwhile == nullptr || row.worthwhile(scheme, shape);
}

LayerScheme MakeLayerScheme(const CompressionScheme& scheme, const GradientShape& shape,
                            const SchemeRun& run, bool error_feedback) {
  const Scheme& row = SchemeOf(scheme.kind_case());
  if (row.make_scheme != nullptr) {
    return MakeLayerScheme(row.make_scheme(scheme, shape.kind), shape, run, error_feedback);
  }
  LayerScheme layer{.name = row.name()};
  if (row.make_codec != nullptr) layer.codec = row.make_codec(scheme, run);
  if (row.make_sketch != nullptr) layer.sketch = row.make_sketch(scheme, shape);
  if (error_feedback || row.memory == MemoryKind::kMomentum) layer.memory = row.memory;
  return layer;
}

std::vector<SchemePreset> CodecPresets() {
  return PresetsOf([](const Scheme& scheme) { return scheme.make_codec != nullptr; });
}

std::vector<SchemePreset> SketchPresets() {
  return PresetsOf([](const Scheme& scheme) { return scheme.make_sketch != nullptr; });
}

StatusOr<CompressionScheme> FindPreset(std::string_view name) {
  std::vector<std::string> names;
  for (const Scheme& row : Table()) {
    for (const SchemePreset& preset : row.presets) {
      names.emplace_back(preset.name);
      if (preset.name != name) continue;
      CompressionScheme scheme;
      const Status parsed = ParseTextConfig(fmt::format("{} {{ {} }}", row.name(), preset.options),
                                            "preset", &scheme, nullptr);
      RT_CHECK(parsed.ok(), parsed.ToString());
      return scheme;
    }
  }
  const std::string nearest = NearestName(name, names);
  return InvalidArgument(fmt::format(
      "unknown codec '{}'{}; codecs and sketches are {}", name,
      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest), fmt::join(names, ", ")));
}

}  // namespace ringtail
