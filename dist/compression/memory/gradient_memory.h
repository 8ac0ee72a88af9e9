// GradientMemory: what of a layer's gradients has not been sent yet.
//
//   a codec:    memory->Encode(codec, .., gradient, payload);    this step's with what is left of
//                                                                earlier ones, less what is sent
//   a sketch:   what = memory->Add(gradient);                    the same in two steps, because
//               .. Pack, allreduce, Unpack ..                    what is sent is known when the
//               memory->Sent(sum, 1 / ranks);                    ranks' sum is there
//
// A memory belongs to one layer of one rank. What it keeps lies in blocks of the gradient block's
// layout, which a checkpoint holds (gradient_compressor.h).
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_COMPRESSION_MEMORY_GRADIENT_MEMORY_H_
#define RINGTAIL_DIST_COMPRESSION_MEMORY_GRADIENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "dist/compression/codecs/codec.h"

namespace ringtail {

class GradientMemory {
 public:
  virtual ~GradientMemory() = default;

  // Writes the payload of what there is to send of elements [offset, offset + gradient.size()), which
  // is then sent. `gradient`: these elements alone, of `shape`.
  virtual void Encode(const Codec& codec, const GradientShape& shape, const CodecMoment& moment,
                      std::span<const float> gradient, int64_t offset,
                      std::span<std::byte> payload) = 0;

  // What there is to send; valid until the next call.
  virtual std::span<const float> Add(std::span<const float> gradient) = 0;
  // scale * decoded has been sent in the name of this rank.
  virtual void Sent(std::span<const float> decoded, float scale) = 0;
  // L2 norm of what is left.
  virtual double Norm() const = 0;
};

// Keeps nothing: for codecs that are right on average.
class NoMemory : public GradientMemory {
 public:
  void Encode(const Codec& codec, const GradientShape& shape, const CodecMoment& moment,
              std::span<const float> gradient, int64_t /*offset*/,
              std::span<std::byte> payload) override {
    codec.Encode(shape, moment, gradient, payload);
  }
  std::span<const float> Add(std::span<const float> gradient) override { return gradient; }
  void Sent(std::span<const float> /*decoded*/, float /*scale*/) override {}
  double Norm() const override { return 0; }
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_MEMORY_GRADIENT_MEMORY_H_
