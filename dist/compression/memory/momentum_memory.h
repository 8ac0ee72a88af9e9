// MomentumMemory: what one rank has not sent of one parameter, when the momentum is kept before
// compression instead of in the optimizer. The other half of Deep Gradient Compression (Lin et al.,
// ICLR 2018, sections 3.1 to 3.3), in the place of ErrorFeedback.
//
//   memory.Add(gradient);                              u = m u + g      v = v + u
//   codec.Encode(.., memory.residual(), payload);      some places of v
//   memory.Sent(codec, .., payload);                   there: v = 0 (less what a narrow value
//                                                      lost), u = 0; elsewhere all is kept
//
// Why u: an element that waits 500 steps has collected plain gradients in error feedback, whereas
// with momentum each gradient acts 1 / (1 - m) times, spread over later steps. v collects what
// momentum would have done meanwhile ("momentum correction"), so that the sum that is sent is what
// momentum SGD would have applied. The optimizer must then have no momentum of its own.
//
// Why u = 0 at sent places ("momentum factor masking"): what waited is old, and its momentum would
// carry the weights on in an old direction. Without it, and with everything sent in every step,
// this is momentum SGD, to the bit; with it, and everything sent, it is SGD without momentum.
//
// Nesterov: u = m (u + g), v = v + u + g.
//
// Clipping: the sum over N ranks of gradients of norm at most T / sqrt(N) has, if they are
// independent, a norm of about T at most. The paper clips the gradient of the whole net, all layers
// in one norm; here each parameter by itself, since compression begins as soon as a layer's
// gradient is there, before those of the others. So T is a layer's threshold, not the net's.
//
// u and v belong to the caller and are part of a checkpoint. v has the unit of the gradient.
// Thread-safety: one thread at a time. Cost of Add: reads g, u, v, writes u, v.
#ifndef RINGTAIL_DIST_COMPRESSION_MEMORY_MOMENTUM_MEMORY_H_
#define RINGTAIL_DIST_COMPRESSION_MEMORY_MOMENTUM_MEMORY_H_

#include <limits>
#include <span>

#include "dist/compression/codecs/dgc_codec.h"

namespace ringtail {

struct MomentumMemoryOptions {
  float momentum = 0.9f;
  bool nesterov = false;
  bool masking = true;
};

class MomentumMemory {
 public:
  static constexpr double kNoClipping = std::numeric_limits<double>::infinity();

  // `velocity` (u) and `residual` (v) outlive it; of the same size, zero in the beginning.
  MomentumMemory(const MomentumMemoryOptions& options, std::span<float> velocity,
                 std::span<float> residual);

  // T / sqrt(N): the norm to clip to, of each rank, if the sum of N ranks is not to exceed T.
  static double LocalNorm(double global_norm, int ranks);

  // A gradient of norm above max_norm is scaled down to it first.
  void Add(std::span<const float> gradient, double max_norm = kNoClipping);
  std::span<const float> residual() const { return residual_; }
  // `payload` is what the codec has made of residual() at that moment.
  void Sent(const DgcCodec& codec, const GradientShape& shape, const CodecMoment& moment,
            std::span<const std::byte> payload);
  // All of residual() was sent as it is: what the scheme does for biases and batch norm, whose
  // momentum then goes on as ever.
  void SentAll();

 private:
  const MomentumMemoryOptions options_;
  const std::span<float> velocity_, residual_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_MEMORY_MOMENTUM_MEMORY_H_
