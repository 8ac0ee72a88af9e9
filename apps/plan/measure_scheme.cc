#include "apps/plan/measure_scheme.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/machine/processor_time.h"
#include "core/median.h"
#include "dist/compression/layer_costs.h"
#include "dist/compression/memory/error_feedback.h"
#include "dist/compression/sample_gradient.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr int kRuns = 3;

// A layer that a codec codes, with its part of the gradients.
struct CodedLayer {
  size_t parameter = 0;  // index
  const LayerScheme* scheme = nullptr;
  EncodeContext context;
  std::span<float> gradient, residual, sum;
  std::vector<std::byte> payload;
  std::vector<double> encoding, decoding, clearing;  // seconds, by run
};

void Encode(CodedLayer* layer) {
  NoMemory none;
  ErrorFeedback feedback(layer->residual);
  CodecMemory& memory =
      layer->scheme->memory == MemoryKind::kNone ? static_cast<CodecMemory&>(none) : feedback;
  memory.Encode(*layer->scheme->codec, layer->context, layer->gradient, 0, layer->payload);
}

// Processor seconds of this thread since the last time: by the clock, a rank that has used up its quota of the
// processor, a quarter of a core in a container, would count what it waits for as coding.
class CodingWatch {
 public:
  double Restart() {
    const double now = ThreadSeconds();
    return now - std::exchange(start_, now);
  }

 private:
  double start_ = ThreadSeconds();
};

// The first run touches memory and tables, and does not count.
void Run(bool counts, std::vector<CodedLayer>* layers) {
  CodingWatch watch;
  const auto record = [&](std::vector<double>* seconds) {
    const double passed = watch.Restart();
    if (counts) seconds->push_back(passed);
  };
  for (CodedLayer& layer : *layers) {
    watch.Restart();
    Encode(&layer);
    record(&layer.encoding);
  }
  for (CodedLayer& layer : *layers) {
    watch.Restart();
    std::ranges::fill(layer.sum, 0.0F);
    record(&layer.clearing);
    const Status added = layer.scheme->codec->DecodeAdd(layer.context, layer.payload, 1, layer.sum);
    record(&layer.decoding);
    RT_CHECK(added.ok(), added.message());
  }
}

// Of those with a codec; `blocks`: gradients, residuals and sums.
std::vector<CodedLayer> LayersWithCodecs(std::span<const LayerScheme> schemes,
                                         std::span<const Parameter> parameters,
                                         std::span<AlignedBuffer, 3> blocks) {
  std::vector<CodedLayer> layers;
  for (size_t i = 0; i < schemes.size(); ++i) {
    if (schemes[i].codec == nullptr) continue;
    const Parameter& parameter = parameters[i];
    const auto part = [&](AlignedBuffer& block) {
      return block.floats().subspan(parameter.offset, parameter.elements);
    };
    layers.push_back({.parameter = i,
                      .scheme = &schemes[i],
                      .context = AfterWarmUp(GradientShapeOf(parameter.spec)),
                      .gradient = part(blocks[0]),
                      .residual = part(blocks[1]),
                      .sum = part(blocks[2])});
    layers.back().payload.resize(schemes[i].codec->PayloadBytes(layers.back().context));
  }
  return layers;
}

}  // namespace

SchemeFacts MeasureScheme(const std::string& name, const CompressionConfig& compression,
                          const ParameterArena& arena) {
  SchemeFacts facts;
  facts.set_name(name);
  *facts.mutable_compression() = compression;
  const std::span<const Parameter> parameters = arena.parameters();
  const std::vector<LayerScheme> schemes = ChooseSchemes(compression, parameters, /*samples=*/1);
  for (size_t i = 0; i < schemes.size(); ++i) {
    LayerCoding sketched;  // a sketch has a state of its own
    if (schemes[i].sketch != nullptr) {
      sketched = MeasureCoding(schemes[i], GradientShapeOf(parameters[i].spec));
    }
    facts.add_encode_s(sketched.encode_seconds);
    facts.add_decode_s(sketched.decode_seconds);
    facts.add_clear_s(0);
  }
  const size_t bytes = arena.values().size_bytes();
  std::array<AlignedBuffer, 3> blocks = {AlignedBuffer(bytes), AlignedBuffer(bytes),
                                         AlignedBuffer(bytes)};
  FillWithNormalNumbers(blocks[0].floats());
  std::vector<CodedLayer> layers = LayersWithCodecs(schemes, parameters, blocks);
  for (int run = -1; run < kRuns; ++run) Run(run >= 0, &layers);
  for (const CodedLayer& layer : layers) {
    const int i = static_cast<int>(layer.parameter);
    facts.set_encode_s(i, Median(layer.encoding));
    facts.set_decode_s(i, Median(layer.decoding));
    facts.set_clear_s(i, Median(layer.clearing));
  }
  return facts;
}

}  // namespace ringtail
