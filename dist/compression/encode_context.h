// EncodeContext: what an encoder and a decoder know of a gradient beside its numbers.
#ifndef RINGTAIL_DIST_COMPRESSION_ENCODE_CONTEXT_H_
#define RINGTAIL_DIST_COMPRESSION_ENCODE_CONTEXT_H_

#include <cstdint>

#include "dist/compression/gradient_shape.h"

namespace ringtail {

// Makes random choices a function of seed, step, parameter, part and rank, and warm-up a function
// of the epoch.
struct EncodeContext {
  GradientShape shape;
  uint64_t seed = 0;
  uint64_t step = 0;  // optimizer steps done
  double epoch = 0;   // since compression started; a real number
  // Batches that this step takes. Sums over samples grow with them, and so must numbers that were
  // chosen for the sums of one batch.
  double batches = 1;
  // Number of ranks whose gradients this is the sum of: 1, or the world's size where a sharded
  // reducer encodes the sum.
  int summands = 1;
  uint32_t parameter = 0;  // index in the arena
  uint32_t part = 0;       // index of the part, if the gradient travels in parts
  uint32_t rank = 0;       // the encoder; random choices that all ranks share do not depend on it

  EncodeContext WithShape(const GradientShape& other) const {
    EncodeContext context = *this;
    context.shape = other;
    return context;
  }
};

// When every warm-up is over: for sizes and times in the long run.
inline EncodeContext AfterWarmUp(const GradientShape& shape) {
  return {.shape = shape, .epoch = 1e6};
}

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_ENCODE_CONTEXT_H_
