// ErrorFeedback: what a codec or a sketch leaves out of a gradient is added to the next one.
//
//   step      gradient -------> residual   a = g + e             what there is to send
//                               residual --Encode--> payload --> all ranks
//                               residual   e = a - decoded       what is left of it
//
//   Over T steps,   decoded[1] + .. + decoded[T]  =  g[1] + .. + g[T] - e[T]:
//   nothing is lost, some of it is late.
//
// That makes training with a coarse codec converge if e stays bounded. It does if the codec sends
// the better part of what it is given:
//
//   |a - decoded|^2 <= (1 - d) |a|^2   for some d > 0     (a "contraction")
//
// as casts, 8 bits linear, 1 bit, sign, 2 bits and top-k do. Unbiased codecs do not: they add
// noise, which with few levels is larger than the gradient (qsgd_codec.h); the next step has to
// send that noise, too, and e grows from step to step. They need no error feedback, and must get
// none.
//
// In GRACE's notation: a = beta e + gamma g, with beta = gamma = 1. The residual is in the units
// of the gradient, before the learning rate, so that it stays right when the rate changes.
//
// The residual belongs to the caller: one float per element, kept between steps, part of a
// checkpoint. Nothing is allocated. Cost: that of Codec::EncodeWithFeedback.
// Thread-safety: one thread at a time for one residual.
// Source: Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression
// Schemes", ICML 2019, algorithm 2; Seide et al. 2014 had it first.
#ifndef RINGTAIL_DIST_COMPRESSION_MEMORY_ERROR_FEEDBACK_H_
#define RINGTAIL_DIST_COMPRESSION_MEMORY_ERROR_FEEDBACK_H_

#include "dist/compression/memory/gradient_memory.h"

namespace ringtail {

class ErrorFeedback : public CodecMemory, public SketchMemory {
 public:
  // `residual`: zeros at first. Must outlive this.
  explicit ErrorFeedback(std::span<float> residual) : residual_(residual) {}

  void Encode(const Codec& codec, const EncodeContext& context, std::span<const float> gradient,
              int64_t offset, std::span<std::byte> payload) override;
  void Wait(std::span<const float> gradient) override { Add(gradient); }
  // Returns the residual, which is now what there is to send.
  std::span<const float> Add(std::span<const float> gradient) override;
  // The residual becomes what is left of it.
  void Sent(std::span<const float> decoded, float scale) override;

 private:
  std::span<float> residual_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_MEMORY_ERROR_FEEDBACK_H_
