// GradientMemory: what of a layer's gradients has not been sent yet.
//
//   what = memory->Add(gradient);           this step's, and what is left of earlier ones
//   codec->Encode(.., what, payload);
//   memory->Sent(codec, .., payload);       what the payload says is taken away
//
// A memory belongs to one layer of one rank. What it keeps lies in blocks of the gradient block's
// layout, which a checkpoint holds (gradient_compressor.h).
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_COMPRESSION_GRADIENT_MEMORY_H_
#define RINGTAIL_DIST_COMPRESSION_GRADIENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.h"
#include "dist/compression/codec.h"

namespace ringtail {

class GradientMemory {
 public:
  virtual ~GradientMemory() = default;

  // Valid, and to be encoded, until the next call; in whole, or in parts that lie one after another.
  virtual std::span<const float> Add(std::span<const float> gradient) = 0;
  // `payload` is what `codec` has made of elements [offset, offset + shape.elements()).
  virtual Status Sent(const Codec& codec, const GradientShape& shape, const CodecMoment& moment,
                      std::span<const std::byte> payload, int64_t offset) = 0;
  // scale * decoded has been sent in the name of this rank.
  virtual void Sent(std::span<const float> decoded, float scale) = 0;
  // L2 norm of what is left.
  virtual double Norm() const = 0;
};

// Keeps nothing: for codecs that are right on average.
class NoMemory : public GradientMemory {
 public:
  std::span<const float> Add(std::span<const float> gradient) override { return gradient; }
  Status Sent(const Codec&, const GradientShape&, const CodecMoment&, std::span<const std::byte>,
              int64_t) override {
    return OkStatus();
  }
  void Sent(std::span<const float> /*decoded*/, float /*scale*/) override {}
  double Norm() const override { return 0; }
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_GRADIENT_MEMORY_H_
