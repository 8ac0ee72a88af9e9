// Two bits: +t, -t or nothing.
//
//             -t              0               t
//   ----------|---------------|---------------|----------   a
//      -t     |               0               |     +t      decoded
//
// What is not sent, and what exceeds t, stays in the residual of error feedback (error_feedback.h)
// until it adds up to t: an element of 0.1 t is sent in every tenth step.
//
//   fixed      t is given, in units of a gradient that is a sum over samples (MXNet: 0.5); for a
//              step of several batches times context.batches, and for a sum of several ranks times
//              context.summands: as much can leave as could have come. If t is too small, the
//              residual grows without end; if it is too large, nothing is sent.
//   adaptive   t = c mean|a|, of the gradient plus residual: Hylo's rule for linear layers.
//              c = 1 is nearly optimal for gradients with long tails.
//
//   byte       0    4              4 + p            4 + 2 p
//   payload    | t  | plus plane   | minus plane    |           p = n / 8, rounded up
//
//   t        f32 (payload.h); if fixed, exactly the given number times batches and summands
//   planes   bit i % 8 of byte i / 8 is element i: it is +t, or -t; neither: 0
//
// Why planes, and what is DataLoss: as in terngrad_codec.h. If t is 0, both planes are 0.
//
// 2 bits per element. Cost: one pass, and one for the mean.
// Sources: Strom, "Scalable Distributed DNN Training Using Commodity GPU Cloud Computing",
// Interspeech 2015 (the threshold and the residual); MXNet's gradient_compression-inl.h (two bits
// for every element, where Strom sends indices); Hylo (adaptive).
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_TWO_BIT_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_TWO_BIT_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct TwoBitOptions {
  double threshold = 0;  // t; 0: adaptive
  double factor = 0;     // c, above 0; adaptive only
};

class TwoBitCodec : public Codec {
 public:
  explicit TwoBitCodec(const TwoBitOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return false; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  void EncodeWithFeedback(const EncodeContext& context, std::span<const float> gradient,
                          std::span<float> residual, std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  bool fixed() const { return options_.threshold > 0; }
  float AdaptiveThreshold(double sum_of_magnitudes, int64_t n) const;
  double GivenThreshold(const EncodeContext& context) const {
    return options_.threshold * context.batches * context.summands;
  }
  float FixedThreshold(std::span<const float> gradient, const EncodeContext& context) const;

  TwoBitOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_TWO_BIT_CODEC_H_
