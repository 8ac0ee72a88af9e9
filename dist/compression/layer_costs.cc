#include "dist/compression/layer_costs.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/median.h"
#include "core/stopwatch.h"
#include "dist/compression/exchange/payload_exchange.h"
#include "dist/compression/memory/error_feedback.h"
#include "dist/compression/sample_gradient.h"

namespace ringtail {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kRuns = 3;

template <typename Function>
double MedianSeconds(const Function& run) {
  run();  // the first run touches memory and tables
  std::vector<double> seconds(kRuns);
  for (double& s : seconds) {
    const Stopwatch stopwatch;
    run();
    s = stopwatch.Seconds();
  }
  return Median(std::move(seconds));
}

std::vector<float> NormalNumbers(int64_t count) {
  std::vector<float> numbers(count);
  FillWithNormalNumbers(numbers);
  return numbers;
}

LayerCoding MeasureCodec(const LayerScheme& scheme, const GradientShape& shape) {
  const Codec& codec = *scheme.codec;
  const std::vector<float> gradient = NormalNumbers(shape.elements());
  const EncodeContext context = AfterWarmUp(shape);
  std::vector<float> residual(gradient.size()), sum(gradient.size());
  const int64_t bytes = codec.PayloadBytes(context);
  std::vector<uint64_t> words(bytes / sizeof(uint64_t) + 1);
  const auto payload = std::as_writable_bytes(std::span(words)).first(bytes);
  NoMemory none;
  ErrorFeedback feedback(residual);
  CodecMemory& memory =
      scheme.memory == MemoryKind::kNone ? static_cast<CodecMemory&>(none) : feedback;
  LayerCoding coding;
  coding.encode_seconds =
      MedianSeconds([&] { memory.Encode(codec, context, gradient, 0, payload); });
  coding.decode_seconds = MedianSeconds([&] {
    const Status added = codec.DecodeAdd(context, payload, 1, sum);
    RT_CHECK(added.ok(), added.message());
  });
  return coding;
}

// Restores the sketch's state.
LayerCoding MeasureSketch(Sketch* sketch, const GradientShape& shape) {
  const std::vector<float> gradient = NormalNumbers(shape.elements());
  const std::vector<float> state(sketch->state().begin(), sketch->state().end());
  const EncodeContext context = AfterWarmUp(shape);
  std::vector<float> residual(gradient.size()), approximation(gradient.size());
  ErrorFeedback memory(residual);
  std::vector<float> share(sketch->TotalFloats());
  LayerCoding coding;
  coding.encode_seconds = MedianSeconds([&] {
    const std::span<const float> pending = memory.Add(gradient);
    for (int round = 0; round < sketch->rounds(); ++round) {
      const auto part = std::span(share).first(sketch->Floats(round));
      sketch->Pack(round, context, pending, part);
      sketch->Take(round, context, part);
    }
    sketch->Unpack(context, approximation);
    memory.Sent(approximation, 1);
  });
  std::ranges::copy(state, sketch->state().begin());
  return coding;
}

// Bytes that a rank receives in an allreduce with the fewest bytes, such as a ring.
int64_t AllReducedBytes(int64_t floats, int world) {
  return 2 * (world - 1) * floats * static_cast<int64_t>(sizeof(float)) / world;
}

}  // namespace

int64_t ReceivedBytes(LayerRoute route, const LayerScheme& scheme, const GradientShape& shape,
                      int world) {
  switch (route) {
    case LayerRoute::kDense:
      return AllReducedBytes(shape.elements(), world);
    case LayerRoute::kGathered:
      return GatheredBytes(*scheme.codec, AfterWarmUp(shape), world) / scheme.every_steps;
    case LayerRoute::kSharded:
      return ShardedBytes(*scheme.codec, AfterWarmUp(shape), world) / scheme.every_steps;
    case LayerRoute::kSketched:
      return AllReducedBytes(scheme.sketch->TotalFloats(), world) / scheme.every_steps;
  }
  RT_CHECK(false, "every route has a number of bytes");
}

LayerCoding MeasureCoding(const LayerScheme& scheme, const GradientShape& shape) {
  if (scheme.dense()) return {};
  return scheme.codec != nullptr ? MeasureCodec(scheme, shape)
                                 : MeasureSketch(scheme.sketch.get(), shape);
}

LayerCosts CostsOf(const LayerScheme& scheme, const GradientShape& shape, const LayerCoding& coding,
                   int world, double seconds_per_byte) {
  const double n = world, every = static_cast<double>(scheme.every_steps);
  const double encode = coding.encode_seconds / every, decode = coding.decode_seconds / every;
  const auto receive = [&](LayerRoute route) {
    return static_cast<double>(ReceivedBytes(route, scheme, shape, world)) * seconds_per_byte;
  };
  LayerCosts costs{.dense = receive(LayerRoute::kDense),
                   .gathered = kNever,
                   .sharded = kNever,
                   .sketched = kNever};
  if (scheme.sketch != nullptr) costs.sketched = receive(LayerRoute::kSketched) + encode + decode;
  if (scheme.codec != nullptr)
    costs.gathered = receive(LayerRoute::kGathered) + encode + n * decode;
  if (scheme.can_shard()) {
    costs.sharded = receive(LayerRoute::kSharded) + (1 + 1 / n) * encode + 2 * decode;
  }
  return costs;
}

LayerRoute CheapestCoded(const LayerCosts& costs) {
  if (costs.sketched < kNever) return LayerRoute::kSketched;
  if (costs.gathered == kNever) return LayerRoute::kDense;  // nothing is coded
  return costs.sharded < costs.gathered ? LayerRoute::kSharded : LayerRoute::kGathered;
}

LayerRoute Cheapest(const LayerCosts& costs) {
  const double coded = std::min({costs.gathered, costs.sharded, costs.sketched});
  return costs.dense <= coded ? LayerRoute::kDense : CheapestCoded(costs);
}

LayerRoute ChooseRoute(const CompressionConfig& config, const LayerScheme& scheme,
                       const LayerCosts& costs) {
  if (scheme.dense()) return LayerRoute::kDense;
  if (config.fall_back() && Cheapest(costs) == LayerRoute::kDense) return LayerRoute::kDense;
  const LayerRoute cheapest = CheapestCoded(costs);
  if (cheapest == LayerRoute::kSketched) return cheapest;
  if (config.route() == CompressionConfig::GATHER) return LayerRoute::kGathered;
  if (config.route() == CompressionConfig::SHARDED && scheme.can_shard()) {
    return LayerRoute::kSharded;
  }
  return cheapest;
}

double SecondsPerByte(const NetworkModel& network, const Topology& topology) {
  return topology.hosts() > 1 ? network.between_hosts.seconds_per_byte
                              : network.within_host.seconds_per_byte;
}

}  // namespace ringtail
