// Important filters: of a convolution's gradient, only the filters that change most are sent, and
// of a large layer fewer than of a small one. Hylo's rule for convolutions ("Hylo: Hybrid
// Layer-Based Optimization to Reduce Communication in Distributed Deep Learning"), whose public
// text gives the idea and no formulas; those below are Ringtail's.
//
//   rows: filters, F = 4    mean |a|
//   | . . . . . . . . . |   0.1                 rate 0.5: the R = ceil(0.5 * 4) = 2 rows of largest
//   | # # # # # # # # # |   2.0   sent          mean |a|; among equals the first. The others wait
//   | . . . . . . . . . |   0.3                 in the residual until they have grown.
//   | # # # # # # # # # |   0.7   sent
//
//   rate = clamp(max_rate (theta / elements)^power, min_rate, 1)
//   in warm-up it falls linearly from 1: 1 + (rate - 1) min(1, epoch / warmup_epochs)
//
// With the defaults of the config: 10,000 elements 50%, 40,000 25%, a million and more 5%.
// Parameters larger than a few times theta make up most of a net, so most of its bytes are sent at
// a low rate. A power of 0 gives all layers the same rate.
//
//   byte 0       b = 4 ceil(F / 32)        b + 4 R columns
//   | bitmap     | rows, f32, ascending    |
//     bit f % 8 of byte f / 8: whether row f is there; bits F and above are 0
//
// Cost: one vectorised pass for the importance, and a copy of what is sent.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_IMPORTANT_FILTERS_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_IMPORTANT_FILTERS_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct ImportantFiltersOptions {
  double max_rate;  // (0, 1]: the rate of a layer of theta elements
  double min_rate;  // (0, 1]
  double power;     // >= 0
  double theta;     // elements, > 0
  double warmup_epochs = 0;
};

class ImportantFiltersCodec : public Codec {
 public:
  explicit ImportantFiltersCodec(const ImportantFiltersOptions& options);

  // "filters of largest mean |g|, 50% to 5%, (n / 10000)^-0.5", of n elements
  std::string Describe() const override;
  bool unbiased() const override { return false; }
  bool divisible() const override { return false; }  // whole rows
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  void EncodeWithFeedback(const EncodeContext& context, std::span<const float> gradient,
                          std::span<float> residual, std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

  double RateOf(const EncodeContext& context) const;
  int64_t RowsOf(const EncodeContext& context) const;  // R

 private:
  const ImportantFiltersOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_IMPORTANT_FILTERS_CODEC_H_
