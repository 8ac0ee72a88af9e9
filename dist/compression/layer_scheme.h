// LayerScheme: how the gradient of one layer travels.
//
//   dense    as it is, in an allreduce
//   codec    as payloads that every rank decodes (codec.h, payload_exchange.h)
//   sketch   as numbers that an allreduce adds up (sketch.h)
//
// and what remembers the part of it that has not been sent: nothing, error feedback
// (error_feedback.h), or Deep Gradient Compression's momentum (momentum_memory.h).
#ifndef RINGTAIL_DIST_COMPRESSION_LAYER_SCHEME_H_
#define RINGTAIL_DIST_COMPRESSION_LAYER_SCHEME_H_

#include <functional>
#include <memory>
#include <string>

#include "dist/compression/codecs/codec.h"
#include "dist/compression/memory/gradient_memory.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

enum class MemoryKind { kNone, kErrorFeedback, kMomentum };

struct LayerScheme {
  std::string name;                    // "bf16"; "dense"
  std::shared_ptr<const Codec> codec;  // one for all layers that are treated alike
  std::unique_ptr<Sketch> sketch;      // of this layer alone
  MemoryKind memory = MemoryKind::kNone;

  bool dense() const { return codec == nullptr && sketch == nullptr; }
  // Whether its payloads may be exchanged in parts (payload_exchange.h): any part of the gradient is
  // one to the codec, and to the memory (momentum belongs to whole gradients).
  bool can_shard() const {
    return codec != nullptr && codec->divisible() && memory != MemoryKind::kMomentum;
  }
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_LAYER_SCHEME_H_
