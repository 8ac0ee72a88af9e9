// Memories: what has not been sent yet of one layer's gradients on one rank.
//
//   CodecMemory    memory->Encode(codec, .., gradient, payload);   this step's gradient plus what
//                                                                  is left of earlier ones, less
//                                                                  what is sent
//   SketchMemory   pending = memory->Add(gradient);                the same in two steps, because
//                  .. Pack, allreduce, Unpack ..                   what is sent is known only when
//                  memory->Sent(sum, 1 / ranks);                   the ranks' sum has arrived
//
//                     for codecs   for sketches   keeps
//   NoMemory          yes          yes            nothing
//   ErrorFeedback     yes          yes            the residual              (error_feedback.h)
//   MomentumMemory    yes          no             residual and velocity     (momentum_memory.h)
//
// What a memory keeps lies in blocks of the gradient block's layout, which checkpoints hold
// (layer_memories.h).
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_COMPRESSION_MEMORY_GRADIENT_MEMORY_H_
#define RINGTAIL_DIST_COMPRESSION_MEMORY_GRADIENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/check.h"
#include "dist/compression/codecs/codec.h"

namespace ringtail {

class CodecMemory {
 public:
  virtual ~CodecMemory() = default;

  // Writes the payload of what there is to send of elements [offset, offset + gradient.size()) of
  // the layer, and remembers the rest. `gradient` and `context.shape`: of these elements alone.
  virtual void Encode(const Codec& codec, const EncodeContext& context,
                      std::span<const float> gradient, int64_t offset,
                      std::span<std::byte> payload) = 0;
  // The whole layer's gradient is to be sent in a later step.
  virtual void Wait(std::span<const float> gradient) = 0;
};

class SketchMemory {
 public:
  virtual ~SketchMemory() = default;

  // What there is to send; valid until the next call.
  virtual std::span<const float> Add(std::span<const float> gradient) = 0;
  // scale * decoded has been sent on behalf of this rank.
  virtual void Sent(std::span<const float> decoded, float scale) = 0;
};

// Keeps nothing: for schemes that are right on average, and for comparison.
class NoMemory : public CodecMemory, public SketchMemory {
 public:
  void Encode(const Codec& codec, const EncodeContext& context, std::span<const float> gradient,
              int64_t /*offset*/, std::span<std::byte> payload) override {
    codec.Encode(context, gradient, payload);
  }
  void Wait(std::span<const float> /*gradient*/) override {
    RT_CHECK(false, "what waits has a memory");
  }
  std::span<const float> Add(std::span<const float> gradient) override { return gradient; }
  void Sent(std::span<const float> /*decoded*/, float /*scale*/) override {}
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_MEMORY_GRADIENT_MEMORY_H_
