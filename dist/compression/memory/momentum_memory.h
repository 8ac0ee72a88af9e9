// MomentumMemory: what one rank has not sent of one parameter when momentum is applied before
// compression instead of in the optimizer. The other half of Deep Gradient Compression (Lin et al.,
// ICLR 2018, sections 3.1 to 3.3); takes the place of ErrorFeedback.
//
//   Encode    u = m u + g      v = v + u        gradient in
//             codec.Encode(.., v, payload)      some places of v
//             there: v = 0 (less what a narrow value lost), u = 0; elsewhere all is kept
//
// Why u: an element that waits 500 steps has collected plain gradients in error feedback, whereas
// with momentum each gradient acts 1 / (1 - m) times, spread over later steps. v collects what
// momentum would have done meanwhile ("momentum correction"), so that the sum that is sent is what
// momentum SGD would have applied. The optimizer must then have no momentum of its own.
//
// Why u = 0 at places that were sent ("momentum factor masking"): what waited is old, and its
// momentum would carry the weights on in an old direction. Without masking, and with everything
// sent in every step, this is momentum SGD, to the bit; with it, and everything sent, it is SGD
// without momentum.
//
// Nesterov: u = m (u + g), v = v + u + g.
//
// Clipping: the sum over N ranks of gradients of norm at most T / sqrt(N) has, if they are
// independent, a norm of about T at most. The paper clips the gradient of the whole net, all layers
// in one norm; here each parameter is clipped by itself, since compression starts as soon as a
// layer's gradient is there, before those of the others. So T is a layer's threshold, not the
// net's.
//
// u and v belong to the caller and are part of a checkpoint. v has the unit of the gradient.
// Thread-safety: one thread at a time. Cost of Add: reads g, u, v, writes u, v.
#ifndef RINGTAIL_DIST_COMPRESSION_MEMORY_MOMENTUM_MEMORY_H_
#define RINGTAIL_DIST_COMPRESSION_MEMORY_MOMENTUM_MEMORY_H_

#include <limits>
#include <span>

#include "dist/compression/memory/gradient_memory.h"

namespace ringtail {

struct MomentumMemoryOptions {
  float momentum = 0;  // m; 0 .. <1
  bool nesterov = false;
  bool masking = true;
  // A gradient of larger norm is scaled down to it.
  double max_norm = std::numeric_limits<double>::infinity();
};

class MomentumMemory : public CodecMemory {
 public:
  // `velocity` (u) and `residual` (v) must outlive it; of the same size, zeros at first.
  MomentumMemory(const MomentumMemoryOptions& options, std::span<float> velocity,
                 std::span<float> residual);

  // T / sqrt(N): the max_norm of each rank if the sum of N ranks is not to exceed T.
  static double LocalNorm(double global_norm, int ranks);

  // Of whole gradients: `offset` is 0.
  void Encode(const Codec& codec, const EncodeContext& context, std::span<const float> gradient,
              int64_t offset, std::span<std::byte> payload) override;

  void Wait(std::span<const float> gradient) override { Add(gradient); }

  // The two steps of a gradient that is sent whole, for example that of a bias or a batch norm,
  // whose momentum then continues as usual: residual() is what to send after Add.
  void Add(std::span<const float> gradient);
  void SentAll();
  std::span<const float> residual() const { return residual_; }

 private:
  const MomentumMemoryOptions options_;
  const std::span<float> velocity_, residual_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_MEMORY_MOMENTUM_MEMORY_H_
