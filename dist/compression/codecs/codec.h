// Codec: writes a gradient in fewer bytes, and reads what others have written.
//
//   rank 0   gradient -Encode-> payload --+                    +-DecodeAdd(0), DecodeAdd(1), ..
//   rank 1   gradient -Encode-> payload --+---- allgather ---->+   into zeros: the sum, the same
//   rank 2   gradient -Encode-> payload --+                    +   bits on all ranks
//                                                             (all of that: DecodeSum)
//
// A payload has a length that follows from the shape and the moment alone, so that ranks need not
// tell each other how long theirs are. What a codec leaves out is kept by whoever calls it
// (error_feedback.h). A codec has no state, so that it can encode any number of gradients.
//
// Never trusts what it decodes: a payload of another length, or one that Encode cannot have written
// as far as that can be told from its bytes, is DataLoss, and nothing outside `sum` is touched
// (`sum` itself is undefined then).
// Thread-safety: const, any number of threads.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/status.h"
#include "dist/compression/gradient_shape.h"

namespace ringtail {

// When and where a gradient is encoded; makes random choices functions of their place, and warm-up
// a function of time.
struct CodecMoment {
  uint64_t seed = 0;
  uint64_t step = 0;  // optimizer steps done
  double epoch = 0;   // since the start of compression, a real number
  // How many times as many samples this step takes as one takes at first: where the batch grows,
  // sums over samples grow with it, and numbers that were chosen for them must, too.
  double batches = 1;
  // Of how many ranks' gradients this is the sum: 1, or what a sharded reducer encodes once more.
  int summands = 1;
  uint32_t parameter = 0;  // which one, in the arena's order
  uint32_t part = 0;       // which part of it, if it travels in parts
  uint32_t rank = 0;       // that encodes; random choices that all ranks must share leave it out
};

// When every warm-up is over: of sizes and times in the long run.
inline constexpr CodecMoment kAfterWarmUp = {.epoch = 1e6};

class Codec {
 public:
  virtual ~Codec() = default;

  virtual std::string Describe() const = 0;  // "2 bits, threshold 1 mean|g|"
  // Whether the mean of what is decoded is the gradient. If not, error feedback is needed; if so, it
  // is not, and may do harm (error_feedback.h).
  virtual bool unbiased() const = 0;
  // Whether any part of a gradient may be encoded by itself, as a vector: what a sharded reducer
  // needs. False if rows, or the whole, matter.
  virtual bool divisible() const = 0;

  // Of the payload; does not depend on moment.rank, .step or .parameter.
  virtual int64_t PayloadBytes(const GradientShape& shape, const CodecMoment& moment) const = 0;

  // Payloads, wherever they are written or read, begin at a multiple of 8 bytes.

  // Writes all bytes of `payload`, which has that length.
  // The same numbers at the same moment give the same bytes, on any machine.
  virtual void Encode(const GradientShape& shape, const CodecMoment& moment,
                      std::span<const float> gradient, std::span<std::byte> payload) const = 0;

  // Error feedback (error_feedback.h): adds `gradient` to `residual`, encodes that, and takes away
  // what the payload says. The payload, and a residual of finite numbers, have the bits that AddTo,
  // Encode and DecodeAdd by -1 give, which is what it does unless a codec knows a way with fewer
  // passes over memory.
  virtual void EncodeWithFeedback(const GradientShape& shape, const CodecMoment& moment,
                                  std::span<const float> gradient, std::span<float> residual,
                                  std::span<std::byte> payload) const;

  // sum[i] += scale * decoded[i]. `moment` is that of Encode. Deterministic: the same bits on all
  // ranks.
  virtual Status DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                           std::span<const std::byte> payload, float scale,
                           std::span<float> sum) const = 0;

  // sum[i] += what the gradients of all ranks add up to; payloads[r] is that of rank r, whatever
  // moment.rank says. Not the sum of what is decoded for codecs whose ranks vote (sign_codec.h).
  virtual Status DecodeSum(const GradientShape& shape, const CodecMoment& moment,
                           std::span<const std::span<const std::byte>> payloads,
                           std::span<float> sum) const;

 protected:
  // Takes away what a payload says that this codec has just written.
  void TakeAway(const GradientShape& shape, const CodecMoment& moment,
                std::span<const std::byte> payload, std::span<float> residual) const;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_CODEC_H_
