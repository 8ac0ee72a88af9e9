// Sketch: a summary that is linear in the gradient, so that an ordinary allreduce adds up the
// sketches of all ranks, and each of N ranks sends no more than each of two.
//
//   round 0   gradient -Pack-> floats -- allreduce --> -Take->  |  random-k: the values at places
//   round 1            -Pack-> floats -- allreduce --> -Take->  |  that all ranks draw alike
//             -Unpack-> approximation of the sum                |  PowerSGD: M Q, then M^T P
//
// A sketch belongs to one parameter and may keep state between steps, which is the same on all
// ranks and part of a checkpoint. What the approximation leaves out is kept by its memory
// (memory/gradient_memory.h).
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_COMPRESSION_SKETCHES_SKETCH_H_
#define RINGTAIL_DIST_COMPRESSION_SKETCHES_SKETCH_H_

#include <cstdint>
#include <span>
#include <string>

#include "dist/compression/codecs/codec.h"

namespace ringtail {

class Sketch {
 public:
  virtual ~Sketch() = default;

  virtual std::string Describe() const = 0;     // "rank 2"
  virtual int rounds() const = 0;               // 1 or 2
  virtual int64_t Floats(int round) const = 0;  // the same on all ranks, in every step
  int64_t TotalFloats() const {                 // of all rounds
    int64_t floats = 0;
    for (int round = 0; round < rounds(); ++round) floats += Floats(round);
    return floats;
  }

  // Writes this rank's contribution to `round`, from the gradient plus residual.
  virtual void Pack(int round, const EncodeContext& context, std::span<const float> gradient,
                    std::span<float> floats) = 0;
  // Receives the sum over all ranks of what they packed.
  virtual void Take(int round, const EncodeContext& context, std::span<const float> sum) = 0;
  // After the last round: approximation[i] = an approximation of the sum over all ranks.
  virtual void Unpack(const EncodeContext& context, std::span<float> approximation) = 0;

  // Kept between steps; may be empty.
  virtual std::span<float> state() = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SKETCHES_SKETCH_H_
