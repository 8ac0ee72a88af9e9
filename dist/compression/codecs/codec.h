// Codec: writes a gradient in fewer bytes, and reads what other ranks have written.
//
//   rank 0   gradient -Encode-> payload --+                    +-DecodeAdd(0), DecodeAdd(1), ..
//   rank 1   gradient -Encode-> payload --+---- allgather ---->+   into zeros: the sum, the same
//   rank 2   gradient -Encode-> payload --+                    +   bits on all ranks
//                                                             (all of that: DecodeSum)
//
// The length of a payload follows from the EncodeContext alone, so that ranks need not exchange it.
// What a codec leaves out is kept by its memory (memory/gradient_memory.h). A codec has no state,
// so one codec can encode any number of gradients.
//
// A codec never trusts what it decodes: a payload of another length, or one that Encode cannot have
// written as far as its bytes can tell, is DataLoss, and nothing outside `sum` is touched (`sum`
// itself is then undefined).
// Thread-safety: const, any number of threads.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/status.h"
#include "dist/compression/encode_context.h"

namespace ringtail {

class Codec {
 public:
  virtual ~Codec() = default;

  virtual std::string Describe() const = 0;  // "2 bits, threshold 1 mean|g|"
  // Whether the mean of what is decoded is the gradient. If not, the codec needs error feedback; if
  // so, it does not, and error feedback may do harm (memory/error_feedback.h).
  virtual bool unbiased() const = 0;
  // Whether any part of a gradient may be encoded by itself, as a vector: what a sharded reducer
  // needs. False if rows, or the whole gradient, matter.
  virtual bool divisible() const = 0;

  // Payload size in bytes; independent of context.rank, .step and .parameter.
  virtual int64_t PayloadBytes(const EncodeContext& context) const = 0;

  // Payloads, wherever they are written or read, start at a multiple of 4 bytes. `gradient`,
  // `residual` and `sum` have context.shape.elements().

  // Writes all bytes of `payload`, which has PayloadBytes(context).
  // The same numbers in the same context give the same bytes, on any machine.
  virtual void Encode(const EncodeContext& context, std::span<const float> gradient,
                      std::span<std::byte> payload) const = 0;

  // Error feedback (memory/error_feedback.h): adds `gradient` to `residual`, encodes the sum, and
  // subtracts what the payload says. The payload, and a residual of finite numbers, have the bits
  // of AddFloats, Encode and DecodeAdd by -1, which is the default; a codec overrides it when it
  // can do so in fewer passes over memory.
  virtual void EncodeWithFeedback(const EncodeContext& context, std::span<const float> gradient,
                                  std::span<float> residual, std::span<std::byte> payload) const;

  // sum[i] += scale * decoded[i]. `context` is that of Encode. Deterministic: the same bits on all
  // ranks.
  virtual Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload,
                           float scale, std::span<float> sum) const = 0;

  // sum[i] += the sum over all ranks; payloads[r] is that of rank r, and context.rank is ignored.
  // Not the sum of what is decoded for codecs whose ranks vote (sign_codec.h).
  virtual Status DecodeSum(const EncodeContext& context,
                           std::span<const std::span<const std::byte>> payloads,
                           std::span<float> sum) const;

  // Calls visit(place, value) for each element that a payload of this codec sends, by ascending
  // place. Default: for each that does not decode to zero; sparse codecs visit their entries.
  using VisitSent = std::function<void(int64_t place, float value)>;
  virtual void ForEachSent(const EncodeContext& context, std::span<const std::byte> payload,
                           const VisitSent& visit) const;

 protected:
  // residual[i] -= decoded[i], of a payload that this codec has just written.
  void Subtract(const EncodeContext& context, std::span<const std::byte> payload,
                std::span<float> residual) const;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_CODEC_H_
