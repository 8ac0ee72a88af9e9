// One rank of a world that compresses its gradients, for tests.
#ifndef RINGTAIL_TESTS_DIST_COMPRESSION_COMPRESSING_RANK_H_
#define RINGTAIL_TESTS_DIST_COMPRESSION_COMPRESSING_RANK_H_

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/config/text_config.h"
#include "dist/compression/gradient_compressor.h"
#include "dist/compression/scheme_choice.h"
#include "tests/dist/test_world.h"

namespace ringtail {

inline CompressionConfig Compression(const std::string& text) {
  CompressionConfig config;
  const Status parsed = ParseTextConfig(text, "test", &config, nullptr);
  RT_CHECK(parsed.ok(), parsed.message());
  return config;
}

// A layer of each kind, in two buckets.
inline std::unique_ptr<ParameterArena> LayersOfEachKind() {
  return std::move(*ParameterArena::Create(
      {{.name = "fc.weight", .shape = {10, 203}, .kind = ParameterKind::kLinearWeight},
       {.name = "fc.bias", .shape = {10}},
       {.name = "conv2.weight", .shape = {24, 12, 3, 3}, .kind = ParameterKind::kConvolutionWeight},
       {.name = "bn.weight", .shape = {24}},
       {.name = "conv1.weight", .shape = {12, 3, 3, 3}, .kind = ParameterKind::kConvolutionWeight}},
      {}));
}

class CompressingRank {
 public:
  // `config` as text; sharded where the codec allows it, if `shard`; `takes_over`: GradientCompressor.
  CompressingRank(Transport* transport, const std::string& config, bool shard,
                  bool takes_over = false)
      : communicator(std::move(
            *Communicator::Create(transport, Topology::Blocks(transport->world_size(), 1),
                                  {.algorithm = "ring", .channel = Channel::kGradients}))),
        arena(LayersOfEachKind()),
        buckets(MakeGradientBuckets(arena->parameters(), {.bytes = 1 << 20, .end_bytes = 8200})) {
    std::vector<GradientCompressor::Layer> layers;
    const CompressionConfig compression = Compression(config);
    for (LayerScheme& scheme : ChooseSchemes(compression, arena->parameters(), 1)) {
      const bool sharded = shard && scheme.can_shard();
      layers.push_back({.scheme = std::move(scheme), .sharded = sharded});
    }
    compressor = std::make_unique<GradientCompressor>(
        arena.get(), buckets, std::move(layers),
        GradientCompressor::Options{.rank = transport->rank(),
                                    .world = transport->world_size(),
                                    .seed = 7,
                                    .dense_epochs = compression.dense_epochs(),
                                    .guard_every_steps = 1,
                                    .keeps_momentum = FindDgc(compression) != nullptr,
                                    .momentum = Momentum(compression)},
        takes_over);
  }

  // What rank `rank` finds for element i in a step.
  static float Gradient(int rank, int64_t step, int64_t i) {
    return static_cast<float>(
        std::sin(0.37 * static_cast<double>(i * (rank + 3)) + 1.7 * static_cast<double>(step)) /
        (1 + static_cast<double>(i % 17)));
  }
  float SumOfGradients(int64_t step, int64_t i) const {
    float sum = 0;
    for (int r = 0; r < communicator->world_size(); ++r) sum += Gradient(r, step, i);
    return sum;
  }

  // Leaves the sum over all ranks, as compressed, in arena->grads(). A step of so many batches, that
  // all have the same gradients, `size` times those above.
  Status Step(int64_t step, int64_t batches = 1, float size = 1) {
    const float factor = size * static_cast<float>(batches);
    for (const Parameter& p : arena->parameters()) {
      for (int64_t i = 0; i < p.elements; ++i) {
        p.grad()[i] = factor * Gradient(communicator->rank(), step, p.offset + i);
      }
    }
    compressor->BeginStep(step, static_cast<double>(step), batches);
    return ReduceBuckets(communicator.get(), *arena, buckets, compressor.get());
  }

  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ParameterArena> arena;
  std::vector<GradientBucket> buckets;
  std::unique_ptr<GradientCompressor> compressor;

 private:
  static MomentumMemoryOptions Momentum(const CompressionConfig& config) {
    const DgcScheme* dgc = FindDgc(config);
    if (dgc == nullptr) return {};
    return {.momentum = static_cast<float>(dgc->momentum()), .nesterov = dgc->nesterov()};
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COMPRESSION_COMPRESSING_RANK_H_
