// LayerScheme: how the gradient of one layer travels.
//
//   dense    uncompressed, in an allreduce
//   codec    as payloads that every rank decodes (codecs/codec.h, exchange/payload_exchange.h)
//   sketch   as numbers that an allreduce adds up (sketches/sketch.h)
//
// and which memory keeps the part that has not been sent: none, error feedback
// (memory/error_feedback.h), or Deep Gradient Compression's momentum (memory/momentum_memory.h).
#ifndef RINGTAIL_DIST_COMPRESSION_LAYER_SCHEME_H_
#define RINGTAIL_DIST_COMPRESSION_LAYER_SCHEME_H_

#include <cstdint>
#include <memory>
#include <string>

#include "dist/compression/codecs/codec.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

enum class MemoryKind { kNone, kErrorFeedback, kMomentum };

struct LayerScheme {
  std::string name = "dense";  // field of CompressionScheme: "bf16"
  std::unique_ptr<Codec> codec;
  std::unique_ptr<Sketch> sketch;
  MemoryKind memory = MemoryKind::kNone;
  // The gradients of so many steps travel together, and wait in the memory until then.
  int64_t every_steps = 1;

  // Layers take turns, by their index among the parameters.
  bool IsDue(int64_t step, size_t parameter) const {
    return (step + static_cast<int64_t>(parameter)) % every_steps == 0;
  }
  bool dense() const { return codec == nullptr && sketch == nullptr; }
  // Whether its payloads may be exchanged in parts (exchange/payload_exchange.h): the codec takes
  // any part of the gradient, and so does the memory (momentum belongs to whole gradients).
  bool can_shard() const {
    return codec != nullptr && codec->divisible() && memory != MemoryKind::kMomentum;
  }
};

// A layer of a run.
struct CompressedLayer {
  LayerScheme scheme;
  bool sharded = false;  // its payloads are exchanged in parts; scheme.can_shard()
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_LAYER_SCHEME_H_
