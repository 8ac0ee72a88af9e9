// AccumulatedGradients: the gradient of a step that is computed in several parts. Backward overwrites
// the gradients of the arena, so the sum of earlier parts lives beside them until the last.
//
//   part     first        ...                      last
//   arena    g1           g2 + sum                 g3 + sum: the whole
//   sum      g1           g1 + g2                  as it was
//
// Thread-safety: the trainer thread. Memory: a second gradient block, if there are several parts.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_ACCUMULATED_GRADIENTS_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_ACCUMULATED_GRADIENTS_H_

#include "core/aligned_buffer.h"
#include "core/parameter.h"
#include "layers/net/net.h"

namespace ringtail {

class AccumulatedGradients {
 public:
  AccumulatedGradients() = default;
  AccumulatedGradients(const ParameterArena& arena, bool several);

  // The gradient of one part of a parameter is there. After the last part the arena has the sum.
  void Add(const Parameter& parameter, bool first, bool last);

 private:
  AlignedBuffer sum_;
};

// Part `part` of `parts` equal ones of a batch of images with `row_floats` floats.
BatchView RowsOfPart(const BatchView& batch, int64_t part, int64_t parts, int64_t row_floats);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_ACCUMULATED_GRADIENTS_H_
