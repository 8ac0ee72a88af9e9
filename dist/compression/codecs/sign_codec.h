// Sign: the sign of every element, and one scale for all: the mean of |a|.
//
//   decoded[i] = +-scale                                  scale = mean |a|
//
// EF-signSGD: with error feedback (error_feedback.h) this converges as SGD does; without, it need
// not converge at all. The ranks' results are added: elements on which they agree grow, others
// cancel.
//
// signSGD with majority vote (`majority_vote`): every element gets the sign that most ranks have,
// and the mean of all scales. A tie is 0 (where a sharded reducer encodes the vote again, a tie
// becomes +, which its error feedback corrects). One faulty rank of many is outvoted, but the
// confidence of the others is lost, and error feedback knows nothing of the vote.
//
//     element      rank 0   rank 1   rank 2      sum, scales 1, 1, 4      vote (mean scale: 2)
//        0           +        +        -             1 + 1 - 4 = -2          +2 for each of 3: +6
//
// (Both are sums over ranks: an optimizer divides by all samples.)
//
//   byte       0        4          4 + n / 8, rounded up
//   payload    | scale  | signs    |
//
//   scale   f32                                                                     (payload.h)
//   signs   bit i % 8 of byte i / 8 is element i; 1: negative (-0, too). Bits after the last are 0.
//
// 1 bit per element. Cost: two passes.
// Sources: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression
// Schemes", ICML 2019, algorithm 1; Bernstein et al., "signSGD with Majority Vote is Communication
// Efficient and Fault Tolerant", ICLR 2019, algorithm 1.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_SIGN_CODEC_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_SIGN_CODEC_H_

#include "dist/compression/codecs/codec.h"

namespace ringtail {

struct SignOptions {
  bool majority_vote = false;
};

class SignCodec : public Codec {
 public:
  explicit SignCodec(const SignOptions& options);

  std::string Describe() const override;
  bool unbiased() const override { return false; }
  bool divisible() const override { return true; }
  int64_t PayloadBytes(const EncodeContext& context) const override;
  void Encode(const EncodeContext& context, std::span<const float> gradient,
              std::span<std::byte> payload) const override;
  Status DecodeAdd(const EncodeContext& context, std::span<const std::byte> payload, float scale,
                   std::span<float> sum) const override;
  Status DecodeSum(const EncodeContext& context,
                   std::span<const std::span<const std::byte>> payloads,
                   std::span<float> sum) const override;

 private:
  // The scale of a payload; DataLoss if Encode cannot have written it.
  StatusOr<float> Check(const EncodeContext& context, std::span<const std::byte> payload,
                        std::span<const float> sum) const;

  bool majority_vote_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_SIGN_CODEC_H_
