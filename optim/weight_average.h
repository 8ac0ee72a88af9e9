// Exponential moving average of weights and buffers (Polyak & Juditsky 1992; Tan & Le 2019):
//
//   average += (1 - d) (value - average),  d = min(decay, (1 + step) / (10 + step))
//
// Thread-safety: the trainer thread only. State: the averages, for checkpoints.
// Cost: one parallel pass per step: reads value and average, writes average, 12 bytes per weight.
#ifndef RINGTAIL_OPTIM_WEIGHT_AVERAGE_H_
#define RINGTAIL_OPTIM_WEIGHT_AVERAGE_H_

#include <cstdint>
#include <span>

#include "core/aligned_buffer.h"
#include "core/parameter.h"

namespace ringtail {

class WeightAverage {
 public:
  WeightAverage(double decay, ParameterArena* arena);  // starts as a copy of the arena's values
  void set_decay(double decay) { decay_ = decay; }
  // After the optimizer's step; not while swapped. `steps`: made since the last update, of which
  // `step` is the last; the average moves as if the value had been the same after each of them.
  void Update(int64_t step, int64_t steps = 1);
  void Swap();  // exchanges averages and weights; a second call exchanges them back
  std::span<float> values() const { return values_.floats(); }
  std::span<float> buffers() const { return buffers_.floats(); }

 private:
  double decay_;
  ParameterArena* arena_;
  AlignedBuffer values_, buffers_;
  bool swapped_ = false;  // the arena holds the averages
};

}  // namespace ringtail

#endif  // RINGTAIL_OPTIM_WEIGHT_AVERAGE_H_
