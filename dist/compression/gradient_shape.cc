#include "dist/compression/gradient_shape.h"

namespace ringtail {

GradientShape GradientShapeOf(const ParameterSpec& parameter) {
  const int64_t elements = NumElements(parameter.shape);
  if (parameter.kind == ParameterKind::kVector) return {.columns = elements};
  const int64_t rows = parameter.shape[0];
  return {.kind = parameter.kind, .rows = rows, .columns = elements / rows};
}

}  // namespace ringtail
