// Important filters: of a convolution's gradient, only the filters that change most are sent, and
// a large layer fewer than of a small one. Hylo's rule for convolutions ("Hylo: Hybrid Layer-Based
// Optimization to Reduce Communication in Distributed Deep Learning"), whose public text gives the
// idea and no formulas; those below are Ringtail's.
//
//   rows: filters, F = 4    mean |a|
//   | . . . . . . . . . |   0.1                 rate 0.5: the R = ceil(0.5 * 4) = 2 rows of largest
//   | # # # # # # # # # |   2.0   sent          mean |a|; of equal ones the first. The others wait
//   | . . . . . . . . . |   0.3                 in the residual until they have grown.
//   | # # # # # # # # # |   0.7   sent
//
//   rate = clamp(rho_max (theta / elements)^p, rho_min, 1)     in warm-up it falls linearly from 1:
//   1 + (rate - 1) min(1, epoch / warmup_epochs)
//
// With the defaults: 10,000 elements 50%, 40,000 25%, a million and more 5%. All parameters larger
// than a few times theta together are most of a net, so most of its bytes are sent at a low rate.
//
//   byte 0       b = 4 ceil(F / 32)        b + 4 R columns
//   | bitmap     | rows, f32, ascending    |
//     bit f % 8 of byte f / 8: whether row f is there; bits from F on are 0
//
// Cost: one vectorised pass for the importance, and a copy of what is sent.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_IMPORTANT_FILTERS_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_IMPORTANT_FILTERS_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct ImportantFiltersOptions {
  enum class Norm { kL1, kL2 };
  Norm norm = Norm::kL1;    // mean |a|, or root mean square
  double rho_max = 0.5;     // (0, 1]: the rate of a layer of theta elements
  double rho_min = 0.05;    // (0, 1]
  double theta = 10'000;    // elements, > 0
  double power = 0.5;       // >= 0
  double uniform_rate = 0;  // above 0: the rate of all layers, whatever their size
  double warmup_epochs = 0;
};

class ImportantFiltersCodec : public Codec {
 public:
  explicit ImportantFiltersCodec(const ImportantFiltersOptions& options);

  std::string Describe() const override;  // "filters of largest mean |g|, 50% to 5%"
  bool unbiased() const override { return false; }
  bool divisible() const override { return false; }  // rows are whole
  int64_t PayloadBytes(const GradientShape& shape, const CodecMoment& moment) const override;
  void Encode(const GradientShape& shape, const CodecMoment& moment,
              std::span<const float> gradient, std::span<std::byte> payload) const override;
  void EncodeWithFeedback(const GradientShape& shape, const CodecMoment& moment,
                          std::span<const float> gradient, std::span<float> residual,
                          std::span<std::byte> payload) const override;
  Status DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                   std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

  double RateOf(const GradientShape& shape, const CodecMoment& moment) const;
  int64_t RowsOf(const GradientShape& shape, const CodecMoment& moment) const;  // R

 private:
  const ImportantFiltersOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_IMPORTANT_FILTERS_CODEC_H_
