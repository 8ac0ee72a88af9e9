// The gradients that bench_compress measures with: random ones, or those of a network.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_BENCH_COMPRESS_TENSOR_SET_H_
#define RINGTAIL_APPS_BENCH_COMPRESS_TENSOR_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "dist/compression/gradient_shape.h"

namespace ringtail {

struct Tensor {
  GradientShape shape;
  std::vector<float> gradient;
};

// Tensors that count as one gradient.
struct TensorSet {
  std::string name;
  std::vector<Tensor> tensors;
};

// A matrix, as close to a square as the size allows, for schemes that use rows and columns.
// Normally distributed; always the same numbers.
TensorSet RandomSet(int64_t bytes);
// The tensors "grad.<name>" of a safetensors file, times `samples`: in one set, or each in its own.
// Errors: no such file, or no such tensors.
StatusOr<std::vector<TensorSet>> ReadSets(const std::string& path, double samples, bool per_tensor);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_COMPRESS_TENSOR_SET_H_
