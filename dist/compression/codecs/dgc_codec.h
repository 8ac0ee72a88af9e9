// Deep Gradient Compression: one element in a thousand, by a threshold that a sample suggests.
// (Lin, Han, Mao, Wang & Dally, ICLR 2018, arXiv 1712.01887.)
//
// Of the residual v that MomentumMemory keeps (momentum_memory.h, the other half of the scheme):
//
//   1. the threshold is what the target k = ceil(density n) says of a 1% sample of |v|
//   2. as long as fewer than 0.8 k or more than 1.3 k elements reach it: times 0.8, or 1.3; and
//      once there was a threshold too low and one too high, the middle between them, since the two
//      factors alone swing past a narrow range for long
//   3. if that does not do after 10 times, the k largest exactly (largest.h)
//
// So the number of entries varies, and the paper leaves it to the network to send messages of
// various lengths. Here all payloads have the same one: room for ceil(1.3 k) entries, with the
// number of those that are used in front. k follows from shape and epoch alone.
//
//   byte 0     4                        4 + 4 c                c = min(n, ceil(1.3 k))
//   | count    | places: count, zeros   | values: count, zeros |      sparse_entries.h, capacity c;
//                                                                     values are f32, f16 or bf16
//
// Density: a list, one for each epoch since the start, the last for all that follow. The paper's
// warm-up is the default: a net that still changes fast loses too much to 0.1%.
// Bytes at density 0.001 and f32: 1.3 * 8 / 4000 of the gradient, 385 times less, and 513 times with
// values of 16 bits; received by each rank from each other one, since sparse payloads cannot be
// summed.
// Cost: a sample and about three vectorised passes; below 16,384 elements the exact selection.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_DGC_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_DGC_CODEC_H_

#include <vector>

#include "dist/compression/codecs/codec.h"
#include "dist/compression/codecs/sparse_entries.h"

namespace ringtail {

struct DgcOptions {
  std::vector<double> densities = {0.25, 0.063, 0.015, 0.004, 0.001};  // by epoch; each in (0, 1]
  ValueFormat values = ValueFormat::kFloat;
};

class DgcCodec : public Codec {
 public:
  explicit DgcCodec(const DgcOptions& options);

  std::string Describe() const override;  // "DGC: 25% to 0.1% by epoch 4, as f32"
  bool unbiased() const override { return false; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const GradientShape& shape, const CodecMoment& moment) const override;
  void Encode(const GradientShape& shape, const CodecMoment& moment,
              std::span<const float> gradient, std::span<std::byte> payload) const override;
  Status DecodeAdd(const GradientShape& shape, const CodecMoment& moment,
                   std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;

  // k, and how many entries a payload may have instead.
  struct Target {
    int64_t entries = 0, least = 0, most = 0;
  };
  Target TargetOf(const GradientShape& shape, const CodecMoment& moment) const;
  SparseLayout LayoutOf(const GradientShape& shape, const CodecMoment& moment) const;

  // A payload's number of entries, and what sparse_entries.h reads them from; DataLoss as above.
  struct Entries {
    int64_t count = 0;
    std::span<const std::byte> bytes;
  };
  StatusOr<Entries> Open(const GradientShape& shape, const CodecMoment& moment,
                         std::span<const std::byte> payload) const;

 private:
  const DgcOptions options_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_DGC_CODEC_H_
