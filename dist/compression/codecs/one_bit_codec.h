// 1-bit SGD: the sign of every element; for every 512 elements the mean of the positive ones and
// the mean of the negative ones.
//
//   a          0.3  -0.1   0.1  -0.5   0.2          means: 0.2 of the positive, 0.3 of the negative
//   decoded    0.2  -0.3   0.2  -0.3   0.2
//
// The two means are, for these signs, the values with the least squared error. What is lost is as
// large as what is sent, so it works only with error feedback (error_feedback.h) and, as in the
// paper, after dense first epochs.
//
//   byte       0            8 B             8 B + n / 8, rounded up
//   payload    | means      | signs         |                         B = blocks, rounded up
//
//   means   f32 of the positive, f32 of the negative without its sign; 0 if there are none
//           (payload.h); both, or neither, are a number
//   signs   bit i % 8 of byte i / 8 is element i; 1: negative (-0, too). Bits after the last are 0.
//
// The paper has two means per column of a weight matrix. Here rows have from 9 (a depthwise filter)
// to 25088 elements (a linear layer): two means per row would cost between 7 bits per element and
// almost nothing, and rows would start in the middle of bytes. Blocks of 512 always cost 1/8 bit,
// adapt to magnitudes within long rows, and any multiple of them can be encoded by itself.
//
// 1.125 bits per element. Cost: two passes over each block, which stays in the nearest cache.
// Source: Seide et al., "1-Bit Stochastic Gradient Descent and its Application to Data-Parallel
// Distributed Training of Speech DNNs", Interspeech 2014, section 3.2.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_ONE_BIT_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_ONE_BIT_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

class OneBitCodec : public Codec {
 public:
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
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_ONE_BIT_CODEC_H_
