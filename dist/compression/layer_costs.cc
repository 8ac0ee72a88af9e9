#include "dist/compression/layer_costs.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "core/check.h"
#include "core/random.h"
#include "dist/compression/error_feedback.h"

namespace ringtail {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kRuns = 3;
constexpr double kAfterWarmUp = 1e6;  // epochs

template <typename Function>
double MedianSeconds(const Function& run) {
  run();  // memory and tables are touched for the first time
  std::array<double, kRuns> seconds{};
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    run();
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  std::ranges::sort(seconds);
  return seconds[kRuns / 2];
}

std::vector<float> NormalNumbers(int64_t count) {
  std::vector<float> numbers(count);
  Rng rng(RngKey(1).With("coding"));
  // As many different ones as matter; drawing them all would take longer than what is measured.
  constexpr int64_t kDrawn = 1 << 16;
  for (int64_t i = 0; i < std::min(count, kDrawn); ++i) numbers[i] = rng.Normal();
  for (int64_t i = kDrawn; i < count; ++i) numbers[i] = numbers[i - kDrawn] * 1.0001F;
  return numbers;
}

LayerCoding MeasureCodec(const LayerScheme& scheme, const GradientShape& shape) {
  const Codec& codec = *scheme.codec;
  const CodecMoment moment{.epoch = kAfterWarmUp};
  const std::vector<float> gradient = NormalNumbers(shape.elements());
  std::vector<float> unsent(gradient.size()), sum(gradient.size());
  const int64_t bytes = codec.PayloadBytes(shape, moment);
  std::vector<uint64_t> words(bytes / sizeof(uint64_t) + 1);
  const auto payload = std::as_writable_bytes(std::span(words)).first(bytes);
  NoMemory none;
  ErrorFeedback feedback(unsent);
  GradientMemory& memory =
      scheme.memory == MemoryKind::kNone ? static_cast<GradientMemory&>(none) : feedback;
  LayerCoding coding{.payload_bytes = bytes};
  coding.encode_seconds = MedianSeconds([&] {
    codec.Encode(shape, moment, memory.Add(gradient), payload);
    const Status sent = memory.Sent(codec, shape, moment, payload, 0);
    RT_CHECK(sent.ok(), sent.message());
  });
  coding.decode_seconds = MedianSeconds([&] {
    const Status added = codec.DecodeAdd(shape, moment, payload, 1, sum);
    RT_CHECK(added.ok(), added.message());
  });
  return coding;
}

// Leaves the sketch's state as it was.
LayerCoding MeasureSketch(Sketch* sketch, const GradientShape& shape) {
  const CodecMoment moment{.epoch = kAfterWarmUp};
  const std::vector<float> gradient = NormalNumbers(shape.elements());
  const std::vector<float> state(sketch->state().begin(), sketch->state().end());
  std::vector<float> unsent(gradient.size()), approximation(gradient.size());
  ErrorFeedback memory(unsent);
  int64_t floats = 0;
  for (int round = 0; round < sketch->rounds(); ++round) floats += sketch->Floats(round);
  std::vector<float> share(floats);
  LayerCoding coding{.payload_bytes = floats * static_cast<int64_t>(sizeof(float))};
  coding.encode_seconds = MedianSeconds([&] {
    const std::span<const float> what = memory.Add(gradient);
    for (int round = 0; round < sketch->rounds(); ++round) {
      const auto part = std::span(share).first(sketch->Floats(round));
      sketch->Pack(round, moment, what, part);
      sketch->Take(round, moment, part);
    }
    sketch->Unpack(moment, approximation);
    memory.Sent(approximation, 1);
  });
  std::ranges::copy(state, sketch->state().begin());
  return coding;
}

}  // namespace

LayerCoding MeasureCoding(const LayerScheme& scheme, const GradientShape& shape) {
  if (scheme.dense()) return {};
  return scheme.codec != nullptr ? MeasureCodec(scheme, shape)
                                 : MeasureSketch(scheme.sketch.get(), shape);
}

LayerCosts CostsOf(const LayerScheme& scheme, const GradientShape& shape, const LayerCoding& coding,
                   int world, double seconds_per_byte) {
  const double n = world;
  const double round_trip = 2 * (n - 1) / n * seconds_per_byte;
  const auto payload = static_cast<double>(coding.payload_bytes);
  LayerCosts costs{.gathered = kNever, .sharded = kNever, .sketched = kNever};
  costs.dense = round_trip * sizeof(float) * static_cast<double>(shape.elements());
  if (scheme.sketch != nullptr) {
    costs.sketched = round_trip * payload + coding.encode_seconds + coding.decode_seconds;
  }
  if (scheme.codec == nullptr) return costs;
  costs.gathered =
      (n - 1) * payload * seconds_per_byte + coding.encode_seconds + n * coding.decode_seconds;
  if (scheme.codec->divisible() && scheme.memory != MemoryKind::kMomentum) {
    costs.sharded =
        round_trip * payload + (1 + 1 / n) * coding.encode_seconds + 2 * coding.decode_seconds;
  }
  return costs;
}

LayerWay CheapestCoded(const LayerCosts& costs) {
  if (costs.sketched < kNever) return LayerWay::kSketched;
  if (costs.gathered == kNever) return LayerWay::kDense;  // nothing is coded
  return costs.sharded < costs.gathered ? LayerWay::kSharded : LayerWay::kGathered;
}

LayerWay Cheapest(const LayerCosts& costs) {
  const double coded = std::min({costs.gathered, costs.sharded, costs.sketched});
  return costs.dense <= coded ? LayerWay::kDense : CheapestCoded(costs);
}

double SecondsPerByte(const NetworkModel& network, const Topology& topology) {
  return topology.hosts() > 1 ? network.between_hosts.seconds_per_byte
                              : network.within_host.seconds_per_byte;
}

}  // namespace ringtail
