// Deep Gradient Compression: one element in a thousand, by a threshold that a sample suggests.
// (Lin, Han, Mao, Wang & Dally, ICLR 2018, arXiv 1712.01887.)
//
// Encodes the residual v that MomentumMemory keeps (momentum_memory.h, the other half of the
// scheme):
//
//   1. the threshold is the one that a 1% sample of |v| suggests for the target k = ceil(density n)
//   2. while fewer than 0.8 k or more than 1.3 k elements reach it: times 0.8, or 1.3; once one
//      threshold was too low and one too high, the middle between them, since the two factors alone
//      can swing past a narrow range for long
//   3. if 10 tries do not suffice, the k largest exactly (largest.h)
//
// So the number of entries varies, and the paper leaves it to the network to send messages of
// various lengths. Here all payloads have the same length: room for c = min(n, ceil(1.3 k)) entries
// (sparse_entries.h). k follows from shape and epoch alone.
//
// Density: a list, one for each epoch since the start; the last one holds for all later epochs. The
// paper's warm-up is 25%, 6.3%, 1.5% and 0.4%: a net that still changes fast loses too much at
// 0.1%.
// Bits at density 0.001: 1.3 k (11.6 + 32) with values of f32, 560 times fewer than the gradient, and
// 1,700 times with 4 levels; each rank receives as many from each other rank, since sparse payloads
// cannot be summed.
// Cost: a sample and about three vectorised passes; below 16,384 elements the exact selection.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_DGC_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_DGC_CODEC_H_

#include <vector>

#include "dist/compression/codecs/codec.h"
#include "dist/compression/codecs/sparse_entries.h"

namespace ringtail {

struct DgcOptions {
  std::vector<double> densities;  // by epoch, at least one; each in (0, 1]
  ValueFormat values = ValueFormat::kFloat;
};

class DgcCodec : public Codec {
 public:
  explicit DgcCodec(const DgcOptions& options);

  std::string Describe() const override;  // "DGC: 25% to 0.1% by epoch 4, as f32"
  bool unbiased() const override { return false; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

  void ForEachSent(const EncodeContext& context, std::span<const std::byte> payload,
                   const VisitSent& visit) const override;

  // k, and the smallest and largest number of entries that a payload may have instead.
  struct Target {
    int64_t entries = 0, least = 0, most = 0;
  };
  Target TargetOf(const EncodeContext& context) const;

 private:
  SparseLayout LayoutOf(const EncodeContext& context) const;

  const DgcOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_DGC_CODEC_H_
