// Linear: blocks of elements share a scale, and every element is a whole number of steps, of 8 or
// of 4 bits.
//
//   byte       0          4 B                                     B = blocks, rounded up
//   payload    | scales   | codes      |
//
//                                                                 8 bits       4 bits
//   block         elements that share a scale                     1024         128
//   scale   f32   step of its block = largest |a| / m             m = 127      m = 7   (payload.h)
//   code          a / step, to the nearest, ties to even: -m .. m decoded: code * step
//                 4 bits: the even element in the lower half of its byte; the other half of the
//                 byte of an odd last element is 0
//
// The error is at most half a step, 1/254 or 1/14 of the block's largest: fine where magnitudes in
// a block are similar, coarse for small elements beside a very large one, which is why blocks are
// small. -m - 1 is never written, and DataLoss if read.
//
// 8.03 or 4.25 bits per element. Cost: two passes over each block, which stays in the nearest
// cache; nibbles one more.
// Source: Dettmers, "8-Bit Approximations for Parallelism in Deep Learning", ICLR 2016 (the linear
// scheme); the blocks are those of Dettmers et al., "8-bit Optimizers via Block-wise Quantization",
// ICLR 2022, smaller for 4 bits as in Li et al., "Memory Efficient Optimizers with 4-bit States",
// NeurIPS 2023 (blocks of 128).
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_LINEAR_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_LINEAR_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct LinearOptions {
  int bits;  // 8 or 4
};

class LinearCodec : public Codec {
 public:
  explicit LinearCodec(const LinearOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return false; }  // it always rounds the same way
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  int64_t ScaleBytes(int64_t elements) const;

  int bits_, most_;
  int64_t block_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_LINEAR_CODEC_H_
