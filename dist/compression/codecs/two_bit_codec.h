// Two bits: +t, -t or nothing.
//
//             -t              0               t
//   ----------|---------------|---------------|----------   a
//      -t     |               0               |     +t      decoded
//
// What is not sent, and what is beyond t, stays with error feedback (error_feedback.h) until it
// makes up a threshold: an element of 0.1 t is sent in every tenth step.
//
//   fixed      t is given, in units of a gradient that is a sum over samples (MXNet's default: 0.5);
//              of a step that takes several batches, times moment.batches, and of a sum of several
//              ranks, times moment.summands: as much can leave as could have come. Too small, and
//              what is left grows without end; too large, and nothing is sent.
//   adaptive   t = c mean|a|, of the gradient with what was left of it: Hylo's rule for linear
//              layers. c = 1 is near the best for gradients with long tails.
//
//   byte       0    4              4 + p            4 + 2 p
//   payload    | t  | plus plane   | minus plane    |           p = n / 8, rounded up
//
//   t        f32 (payload.h); if fixed, the very number that is given, or that times both
//   planes   bit i % 8 of byte i / 8 is element i: it is +t, or -t; neither: 0
//
// Why planes, and what is DataLoss: as in terngrad_codec.h. If t is 0, both planes are.
//
// 2 bits per element. Cost: one pass, and one for the mean.
// Sources: Strom, "Scalable Distributed DNN Training Using Commodity GPU Cloud Computing",
// Interspeech 2015 (the threshold and what stays); MXNet's gradient_compression-inl.h (two bits for
// every element, where Strom sends indices); Hylo (adaptive).
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_TWO_BIT_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_TWO_BIT_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct TwoBitOptions {
  enum class Rule { kAdaptive, kFixed };
  Rule rule = Rule::kAdaptive;
  double factor = 1;       // c; adaptive
  double threshold = 0.5;  // t; fixed
};

class TwoBitCodec : public Codec {
 public:
  explicit TwoBitCodec(const TwoBitOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return false; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const GradientShape& shape, const CodecMoment& moment) const override;
  void Encode(const GradientShape& shape, const CodecMoment& moment,
              std::span<const float> gradient, std::span<std::byte> payload) const override;
  void EncodeWithFeedback(const GradientShape& shape, const CodecMoment& moment,
                          std::span<const float> gradient, std::span<float> residual,
                          std::span<std::byte> payload) const override;
  Status DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                   std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  float AdaptiveThreshold(double sum_of_magnitudes, int64_t n) const;
  double GivenThreshold(const CodecMoment& moment) const {
    return options_.threshold * moment.batches * moment.summands;
  }
  float FixedThreshold(std::span<const float> gradient, const CodecMoment& moment) const;

  TwoBitOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_TWO_BIT_CODEC_H_
