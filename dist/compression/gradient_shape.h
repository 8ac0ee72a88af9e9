// GradientShape: what a compression scheme knows of the gradient that it gets.
//
//   convolution weight   OC x (IC KH KW)     one row per filter
//   linear weight        OC x IC             one row per output
//   vector               1 x C               bias, batch norm
#ifndef RINGTAIL_DIST_COMPRESSION_GRADIENT_SHAPE_H_
#define RINGTAIL_DIST_COMPRESSION_GRADIENT_SHAPE_H_

#include <cstdint>

#include "core/parameter.h"

namespace ringtail {

struct GradientShape {
  ParameterKind kind = ParameterKind::kVector;
  int64_t rows = 1, columns = 0;

  int64_t elements() const { return rows * columns; }
};

GradientShape GradientShapeOf(const ParameterSpec& parameter);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_GRADIENT_SHAPE_H_
