// 8-bit linear: blocks of 1024 elements share a scale, and every element is a whole number of
// steps.
//
//   byte       0          4 B          4 B + n
//   payload    | scales   | codes      |            B = blocks = n / 1024, rounded up
//
//   scale   f32   step of its block = largest |a| / 127                     (payload.h)
//   code    i8    a / step, to the nearest, ties to even: -127 .. 127       decoded: code * step
//
// The error is at most half a step, 1/254 of the block's largest: fine where magnitudes in a block
// are similar, coarse for small elements beside a very large one, which is why blocks are small.
// -128 is never written, and DataLoss if read.
//
// 8.03 bits per element. Cost: two passes over each block, which stays in the nearest cache.
// Source: Dettmers, "8-Bit Approximations for Parallelism in Deep Learning", ICLR 2016 (the linear
// scheme); the blocks are those of Dettmers et al., "8-bit Optimizers via Block-wise Quantization",
// ICLR 2022.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_LINEAR8_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_LINEAR8_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

class Linear8Codec : public Codec {
 public:
  std::string Describe() const override;
  bool unbiased() const override { return false; }  // it always rounds the same way
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_LINEAR8_CODEC_H_
