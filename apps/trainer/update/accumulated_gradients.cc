#include "apps/trainer/update/accumulated_gradients.h"

#include <algorithm>

#include "core/add_to.h"

namespace ringtail {

AccumulatedGradients::AccumulatedGradients(const ParameterArena& arena, bool several) {
  if (several) sum_ = AlignedBuffer(arena.grads().size_bytes());
}

void AccumulatedGradients::Add(const Parameter& parameter, bool first, bool last) {
  const std::span<float> gradient = parameter.grad(), sum = sum_.floats();
  if (!first) AddTo(sum.subspan(parameter.offset, parameter.elements), gradient);
  if (!last) std::ranges::copy(gradient, sum.begin() + parameter.offset);
}

BatchView RowsOfPart(const BatchView& batch, int64_t part, int64_t parts, int64_t row_floats) {
  const int64_t rows = std::ssize(batch.labels) / parts;
  return {batch.images + part * rows * row_floats, batch.labels.subspan(part * rows, rows),
          batch.soft.Rows(part * rows, rows)};
}

}  // namespace ringtail
