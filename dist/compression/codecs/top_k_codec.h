// Top-k: the elements of a gradient that are farthest from zero, with their places.
// (Aji & Heafield, EMNLP 2017, "Sparse communication for distributed gradient descent"; Alistarh et
// al., NeurIPS 2018, for why it converges with error feedback.)
//
//   gradient   0.1  -3   0.2   2   0  -0.3      density 0.3: k = ceil(0.3 * 6) = 2
//   payload    | -3 | 2 | places 1, 3 |         sparse_entries.h, capacity k
//   decoded    0    -3   0     2   0   0
//
// k entries, fewer only if others are zero (or too far below the largest: sparse_values.h); among
// equal |a| those that come first. Bits: at most k (2 + log2(n / k)) for the places, and 3 to 32
// for each value: density 0.001 with 4 levels is 2,100 times fewer than f32.
// But payloads of N ranks cannot be summed: each rank receives N - 1 of them; or the owner of a part adds them
// up and encodes the sum, of which `sum_density` is then sent: up to N times as many elements are not zero.
// Cost: encoding reads the gradient twice (largest.h); decoding touches k elements.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_TOP_K_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_TOP_K_CODEC_H_

#include "dist/compression/codecs/codec.h"
#include "dist/compression/codecs/sparse_entries.h"

namespace ringtail {

struct TopKOptions {
  double density;          // (0, 1]
  double sum_density = 0;  // of a sum over ranks; 0: the same
  ValueFormat values = ValueFormat::kFloat;
};

class TopKCodec : public Codec {
 public:
  explicit TopKCodec(const TopKOptions& options);

  std::string Describe() const override;  // "the largest 1% as f32"
  bool unbiased() const override { return false; }
  bool divisible() const override { return true; }  // it then sends the largest of each part
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

 private:
  SparseLayout LayoutOf(const EncodeContext& context) const;

  const TopKOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_TOP_K_CODEC_H_
