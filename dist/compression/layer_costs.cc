#include "dist/compression/layer_costs.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/median.h"
#include "core/random.h"
#include "dist/compression/exchange/payload_exchange.h"
#include "dist/compression/memory/error_feedback.h"

namespace ringtail {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kRuns = 3;

template <typename Function>
double MedianSeconds(const Function& run) {
  run();  // memory and tables are touched for the first time
  std::vector<double> seconds(kRuns);
  for (double& s : seconds) {
    const auto start = std::chrono::steady_clock::now();
    run();
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return Median(std::move(seconds));
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
  const std::vector<float> gradient = NormalNumbers(shape.elements());
  std::vector<float> unsent(gradient.size()), sum(gradient.size());
  const int64_t bytes = codec.PayloadBytes(shape, kAfterWarmUp);
  std::vector<uint64_t> words(bytes / sizeof(uint64_t) + 1);
  const auto payload = std::as_writable_bytes(std::span(words)).first(bytes);
  NoMemory none;
  ErrorFeedback feedback(unsent);
  GradientMemory& memory =
      scheme.memory == MemoryKind::kNone ? static_cast<GradientMemory&>(none) : feedback;
  LayerCoding coding;
  coding.encode_seconds =
      MedianSeconds([&] { memory.Encode(codec, shape, kAfterWarmUp, gradient, 0, payload); });
  coding.decode_seconds = MedianSeconds([&] {
    const Status added = codec.DecodeAdd(shape, kAfterWarmUp, payload, 1, sum);
    RT_CHECK(added.ok(), added.message());
  });
  return coding;
}

// Leaves the sketch's state as it was.
LayerCoding MeasureSketch(Sketch* sketch, const GradientShape& shape) {
  const std::vector<float> gradient = NormalNumbers(shape.elements());
  const std::vector<float> state(sketch->state().begin(), sketch->state().end());
  std::vector<float> unsent(gradient.size()), approximation(gradient.size());
  ErrorFeedback memory(unsent);
  std::vector<float> share(sketch->TotalFloats());
  LayerCoding coding;
  coding.encode_seconds = MedianSeconds([&] {
    const std::span<const float> what = memory.Add(gradient);
    for (int round = 0; round < sketch->rounds(); ++round) {
      const auto part = std::span(share).first(sketch->Floats(round));
      sketch->Pack(round, kAfterWarmUp, what, part);
      sketch->Take(round, kAfterWarmUp, part);
    }
    sketch->Unpack(kAfterWarmUp, approximation);
    memory.Sent(approximation, 1);
  });
  std::ranges::copy(state, sketch->state().begin());
  return coding;
}

// In an allreduce of the fewest bytes, as of a ring.
int64_t AllReducedBytes(int64_t floats, int world) {
  return 2 * (world - 1) * floats * static_cast<int64_t>(sizeof(float)) / world;
}

}  // namespace

int64_t ReceivedBytes(LayerWay way, const LayerScheme& scheme, const GradientShape& shape,
                      int world) {
  switch (way) {
    case LayerWay::kDense:
      return AllReducedBytes(shape.elements(), world);
    case LayerWay::kGathered:
      return GatheredBytes(*scheme.codec, shape, kAfterWarmUp, world);
    case LayerWay::kSharded:
      return ShardedBytes(*scheme.codec, shape, kAfterWarmUp, world);
    case LayerWay::kSketched:
      return AllReducedBytes(scheme.sketch->TotalFloats(), world);
  }
  RT_CHECK(false, "every way has bytes");
}

LayerCoding MeasureCoding(const LayerScheme& scheme, const GradientShape& shape) {
  if (scheme.dense()) return {};
  return scheme.codec != nullptr ? MeasureCodec(scheme, shape)
                                 : MeasureSketch(scheme.sketch.get(), shape);
}

LayerCosts CostsOf(const LayerScheme& scheme, const GradientShape& shape, const LayerCoding& coding,
                   int world, double seconds_per_byte) {
  const double n = world, encode = coding.encode_seconds, decode = coding.decode_seconds;
  const auto receive = [&](LayerWay way) {
    return static_cast<double>(ReceivedBytes(way, scheme, shape, world)) * seconds_per_byte;
  };
  LayerCosts costs{.dense = receive(LayerWay::kDense),
                   .gathered = kNever,
                   .sharded = kNever,
                   .sketched = kNever};
  if (scheme.sketch != nullptr) costs.sketched = receive(LayerWay::kSketched) + encode + decode;
  if (scheme.codec != nullptr) costs.gathered = receive(LayerWay::kGathered) + encode + n * decode;
  if (scheme.can_shard()) {
    costs.sharded = receive(LayerWay::kSharded) + (1 + 1 / n) * encode + 2 * decode;
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
