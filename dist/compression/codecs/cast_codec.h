// Cast: every element as a float of 16 bits. Half of the bytes, next to no error. The exemplar
// for new codecs.
//
//   byte       0       2       4           2 n
//   payload    | a[0]  | a[1]  | ..  a[n-1] |      little-endian
//
//   bf16   s eeeeeeee mmmmmmm      a float's range, 8 bits of precision: error up to 2^-8 of |a|
//   fp16   s eeeee mmmmmmmmmm      up to 65504, 11 bits of precision: error up to 2^-11 of |a|,
//                                  2^-25 below 2^-14
//
// Both round to the nearest, ties to even, so that the error is as often up as down, and NaN stays
// NaN, infinity stays infinity. A float above bf16's largest (3.39e38) becomes infinity.
//
// fp16 has a small range, and Ringtail's gradients are SUMS over samples, which grow with the
// batch. So an element is divided by the samples of this step (of the whole world, and of all
// batches that the step takes: context.batches) before the cast, and multiplied by them afterwards:
// what travels is the rank's share of the mean gradient, whose size does not depend on either.
// Beyond the range it becomes the largest number, +-65504, instead of an infinity that would end
// the run: one clipped element still points the right way.
//
// Sums are f32: nothing is ever added in 16 bits. Every payload of the right length is valid.
// Cost: one pass each way (README.md has the speeds).
// Source: Micikevicius et al., "Mixed Precision Training", ICLR 2018 (fp16, and why its range needs
// care); Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_CAST_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_CAST_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

enum class CastFormat { kBf16, kFp16 };

struct CastOptions {
  CastFormat format = CastFormat::kBf16;
  double samples = 1;  // in a step of one batch, on all ranks; fp16 only; above 0
};

class CastCodec : public Codec {
 public:
  explicit CastCodec(const CastOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return false; }  // it always rounds the same way
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  double Samples(const EncodeContext& context) const { return options_.samples * context.batches; }

  CastOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_CAST_CODEC_H_
