// QSGD: every element is rounded to one of a few levels at random, such that its mean is right.
//
//   levels      0        1/s       2/s  ..                    1         of the norm of the bucket
//               |---------|----x----|-------------------------|
//                             y = |a| / norm * s = 1.4:   2 with probability 0.4, else 1
//
// A bucket is 512 elements; its norm is the L2 norm. The larger s, the smaller the noise: a bucket
// of d elements adds at most min(d / s^2, sqrt(d) / s) of its own square, so with 4 bits the noise is
// larger than the gradient. It is noise, though: its mean over ranks and steps is 0, so that it
// needs no error feedback (and must not get it: error_feedback.h).
//
//   byte       0         4 B               4 B + n, or 4 B + n / 2
//   payload    | norms   | codes           |                     B = buckets, rounded up
//
//   norm   f32            (payload.h)
//   code   i8, or 4 bits, the even element in the lower half of its byte: the level with a's sign,
//          -s .. s; s at most 127, or 7. An odd last element's other half is 0.
//
// Other codes are DataLoss. Element i's draw is word i of the Philox sequence under (seed, step,
// parameter, rank) (core/random.h), so that a payload can be made again, by any number of threads.
// The paper codes levels by Elias' code, which pays where most are 0; fixed lengths are faster, and
// of known length.
//
// 8.06 or 4.06 bits per element. Cost: the draws.
// Source: Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and
// Encoding", NIPS 2017, section 3.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_QSGD_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_QSGD_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct QsgdOptions {
  int bits = 8;    // of a code: 8 or 4
  int levels = 0;  // s, from 1 to 127 or 7; 0: as many as the bits allow
};

class QsgdCodec : public Codec {
 public:
  explicit QsgdCodec(const QsgdOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return true; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const GradientShape& shape, const CodecMoment& moment) const override;
  void Encode(const GradientShape& shape, const CodecMoment& moment,
              std::span<const float> gradient, std::span<std::byte> payload) const override;
  Status DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                   std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  int bits_, levels_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_QSGD_CODEC_H_
