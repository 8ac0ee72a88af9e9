// One rank of a world that compresses its gradients, for tests.
#ifndef RINGTAIL_TESTS_DIST_COMPRESSION_COMPRESSING_RANK_H_
#define RINGTAIL_TESTS_DIST_COMPRESSION_COMPRESSING_RANK_H_

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "dist/compression/compressed_reducer.h"
#include "dist/compression/scheme_choice.h"
#include "tests/dist/test_world.h"
#include "tests/testing/parse_config.h"

namespace ringtail {

inline CompressionConfig Compression(const std::string& text) {
  return ParseConfig<CompressionConfig>(text);
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
  // `config`: as text. `shard`: exchanges payloads in parts where the scheme allows it.
  // `carries_over`: LayerMemoryOptions.
  CompressingRank(Transport* transport, const std::string& config, bool shard,
                  bool carries_over = false)
      : communicator(std::move(*Communicator::Create(
            transport, Topology::Blocks(transport->world_size(), 1), {.algorithm = "ring"}))),
        arena(LayersOfEachKind()),
        buckets(MakeGradientBuckets(arena->parameters(), {.bytes = 1 << 20, .end_bytes = 8200})) {
    std::vector<CompressedLayer> layers;
    const CompressionConfig compression = Compression(config);
    for (LayerScheme& scheme : ChooseSchemes(compression, arena->parameters(), 1)) {
      const bool sharded = shard && scheme.can_shard();
      layers.push_back({.scheme = std::move(scheme), .sharded = sharded});
    }
    CompressedReducer::Options options =
        ReducerOptions(compression, transport->rank(), transport->world_size(), /*samples=*/1);
    options.seed = 7;
    options.guard_every_steps = 1;
    options.memory.carries_over = carries_over;
    reducer = std::make_unique<CompressedReducer>(arena.get(), buckets, std::move(layers), options);
  }

  // The gradient of element i on rank `rank` in a step.
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

  // Leaves the compressed sum over all ranks in arena->grads(). A step of `batches` batches, whose
  // gradients are all the same: `size` times those above.
  Status Step(int64_t step, int64_t batches = 1, float size = 1) {
    const float factor = size * static_cast<float>(batches);
    for (const Parameter& p : arena->parameters()) {
      for (int64_t i = 0; i < p.elements; ++i) {
        p.grad()[i] = factor * Gradient(communicator->rank(), step, p.offset + i);
      }
    }
    reducer->BeginStep(step, static_cast<double>(step), batches);
    return ReduceBuckets(communicator.get(), *arena, buckets, reducer.get());
  }

  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<ParameterArena> arena;
  std::vector<GradientBucket> buckets;
  std::unique_ptr<CompressedReducer> reducer;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COMPRESSION_COMPRESSING_RANK_H_
