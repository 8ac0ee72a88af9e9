#include "dist/compression/codecs/codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/config/text_config.h"
#include "dist/compression/codecs/cast_codec.h"
#include "dist/compression/codecs/dgc_codec.h"
#include "dist/compression/codecs/important_filters_codec.h"
#include "dist/compression/codecs/linear8_codec.h"
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

using CodecPointer = std::unique_ptr<Codec>;
using SketchPointer = std::unique_ptr<Sketch>;

constexpr NamedCodec kCodecs[] = {
    {"bf16", "cast to bfloat16",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<CastCodec>(CastOptions{.format = CastFormat::kBf16});
     }},
    {"fp16", "cast to half precision of the gradient's mean over samples",
     [](const CodecRun& run) -> CodecPointer {
       return std::make_unique<CastCodec>(
           CastOptions{.format = CastFormat::kFp16, .samples = run.samples});
     }},
    {"linear8", "8 bits, a scale for each 1024 elements",
     [](const CodecRun& /*run*/) -> CodecPointer { return std::make_unique<Linear8Codec>(); }},
    {"qsgd8", "QSGD with 127 levels at random",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<QsgdCodec>(QsgdOptions{.bits = 8});
     }},
    {"qsgd4", "QSGD with 7 levels at random",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<QsgdCodec>(QsgdOptions{.bits = 4});
     }},
    {"terngrad", "-s, 0 or s at random, clipped at 2.5 sigma",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<TernGradCodec>(TernGradOptions{});
     }},
    {"two_bit", "+-mean|g| or nothing",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<TwoBitCodec>(TwoBitOptions{});
     }},
    {"two_bit_fixed", "+-0.5 or nothing, as MXNet does",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<TwoBitCodec>(TwoBitOptions{.rule = TwoBitOptions::Rule::kFixed});
     }},
    {"one_bit", "signs, the two means of each 512 elements",
     [](const CodecRun& /*run*/) -> CodecPointer { return std::make_unique<OneBitCodec>(); }},
    {"sign", "signs times mean|g|",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<SignCodec>(SignOptions{});
     }},
    {"sign_vote", "signs, of which the majority decides",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<SignCodec>(SignOptions{.majority_vote = true});
     }},
    {"top_k", "the largest 1 %",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<TopKCodec>(TopKOptions{});
     }},
    {"dgc", "the largest 0.1 %, as Deep Gradient Compression finds them",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<DgcCodec>(DgcOptions{.densities = {0.001}});
     }},
    {"important_filters", "Hylo's most important filters",
     [](const CodecRun& /*run*/) -> CodecPointer {
       return std::make_unique<ImportantFiltersCodec>(ImportantFiltersOptions{});
     }},
};

constexpr NamedSketch kSketches[] = {
    {"random_k", "1 % at random places",
     [](const GradientShape& shape) -> SketchPointer {
       return std::make_unique<RandomKSketch>(RandomKOptions{}, shape);
     }},
    {"power_sgd", "rank 2, the first step",
     [](const GradientShape& shape) -> SketchPointer {
       return std::make_unique<PowerSgdSketch>(PowerSgdOptions{}, shape);
     }},
};

}  // namespace

std::span<const NamedCodec> NamedCodecs() { return kCodecs; }

std::span<const NamedSketch> NamedSketches() { return kSketches; }

const NamedSketch* FindSketch(std::string_view name) {
  const auto* const found = std::ranges::find(kSketches, name, &NamedSketch::name);
  return found != std::end(kSketches) ? found : nullptr;
}

StatusOr<std::unique_ptr<Codec>> MakeCodec(std::string_view name, const CodecRun& run) {
  std::vector<std::string> names;
  for (const NamedCodec& codec : kCodecs) {
    if (codec.name == name) return codec.make(run);
    names.emplace_back(codec.name);
  }
  for (const NamedSketch& sketch : kSketches) names.emplace_back(sketch.name);
  const std::string nearest = NearestName(name, names);
  return InvalidArgument(fmt::format(
      "unknown codec '{}'{}; codecs and sketches are {}", name,
      nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest), fmt::join(names, ", ")));
}

}  // namespace ringtail
