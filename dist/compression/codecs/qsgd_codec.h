// QSGD: every element is rounded to one of a few levels at random, such that its mean is right.
//
//   levels      0        1/s       2/s  ..                    1         of the norm of the bucket
//               |---------|----x----|-------------------------|
//                             y = |a| / norm * s = 1.4:   2 with probability 0.4, else 1
//
// A bucket is 512 elements; its norm is the L2 norm. The larger s, the smaller the noise: a bucket
// of d elements adds at most min(d / s^2, sqrt(d) / s) of its own square, so with 4 bits the noise
// is larger than the gradient. Its mean over ranks and steps is 0, though, so that QSGD needs no
// error feedback (and must not get it: error_feedback.h).
//
//   byte       0         4 B               4 B + n, or 4 B + n / 2
//   payload    | norms   | codes           |                     B = buckets, rounded up
//
//   norm   f32            (payload.h)
//   code   i8, or 4 bits, the even element in the lower half of its byte: the level with a's sign,
//          -s .. s. Up to s = 7 a code has 4 bits, up to 127 it has 8. The other half of the byte
//          of an odd last element is 0.
//
// Other codes are DataLoss. Element i's draw is word i of the Philox sequence under (seed, step,
// parameter, rank) (core/random.h), so that a payload can be reproduced, by any number of threads.
// The paper uses Elias codes for levels, which pays where most are 0; fixed lengths are faster, and
// known in advance.
//
// 8.06 or 4.06 bits per element. Cost: the draws.
// Source: Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and
// Encoding", NIPS 2017, section 3.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_QSGD_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_QSGD_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct QsgdOptions {
  int levels;  // s, from 1 to 127
};

class QsgdCodec : public Codec {
 public:
  explicit QsgdCodec(const QsgdOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return true; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  int bits_, levels_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_QSGD_CODEC_H_
