// Summed exchange: for what can be added up on the way, dense gradients and sketches. One allreduce
// carries all of a bucket; a second one carries the second round of sketches that have two.
//
//   bucket   bn.weight | fc.bias | conv5.weight (PowerSGD)
//   round 0  [ gradient | gradient | M Q   ] -- allreduce -->
//   round 1                        [ M^T P ] -- allreduce -->  P Q^T
//
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_DIST_COMPRESSION_EXCHANGE_SUMMED_EXCHANGE_H_
#define RINGTAIL_DIST_COMPRESSION_EXCHANGE_SUMMED_EXCHANGE_H_

#include <span>
#include <vector>

#include "dist/communicator.h"
#include "dist/compression/memory/gradient_memory.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

struct SummedGradient {
  Sketch* sketch = nullptr;  // null: dense
  EncodeContext context;
  SketchMemory* memory = nullptr;  // of a sketch
  std::span<float> gradient;       // this rank's before, the sum over all ranks afterwards
  std::span<const float> pending;  // of a sketch, during Run: gradient plus residual

  int64_t Floats(int round) const;
};

class SummedExchange {
 public:
  Status Run(Communicator* ranks, std::span<SummedGradient> gradients);

 private:
  Status RunRound(Communicator* ranks, std::span<SummedGradient> gradients, int round);

  std::vector<float> together_;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_EXCHANGE_SUMMED_EXCHANGE_H_
