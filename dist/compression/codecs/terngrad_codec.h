// TernGrad: -s, 0 or +s, drawn at random such that the mean is right.
//
//   sigma = sqrt(mean a^2)               s = min(largest |a|, 2.5 sigma)
//   a becomes sign(a) s with probability min(|a| / s, 1), else 0
//
// The clipping at 2.5 sigma keeps one large element from making all others rare. It makes the mean
// of the 1 % that are clipped too small, on purpose: `unbiased` disregards that. (The paper takes
// sigma around the mean; means of gradients are near 0.)
//
//   byte       0    4              4 + p            4 + 2 p
//   payload    | s  | plus plane   | minus plane    |           p = n / 8, rounded up
//
//   s        f32                                                (payload.h)
//   planes   bit i % 8 of byte i / 8 is element i: it is +s, or -s; neither: 0
//
// Two planes, not two bits side by side: so a comparison of 16 elements is 16 bits as they are
// stored. An element in both planes, or a bit after the last element, is DataLoss. Draws as in
// qsgd_codec.h. Each rank has its own s: payloads are decoded before they are added, so that ranks
// need not agree on one s first, as they do in the paper.
//
// 2 bits per element. Cost: two passes for s, one with the draws.
// Source: Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep
// Learning", NIPS 2017, equations 2 to 7 and section 3.3.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_TERNGRAD_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_TERNGRAD_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct TernGradOptions {
  double clip = 2.5;  // in sigmas; 0: no clipping, for which the mean is exactly right
};

class TernGradCodec : public Codec {
 public:
  explicit TernGradCodec(const TernGradOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return true; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  double clip_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_TERNGRAD_CODEC_H_
