// Shared by the tests of sparse and low-rank compression: gradients, the round trip of a codec, and
// a world of ranks that add up their sketches.
#ifndef RINGTAIL_TESTS_DIST_COMPRESSION_SPARSE_GRADIENTS_H_
#define RINGTAIL_TESTS_DIST_COMPRESSION_SPARSE_GRADIENTS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "core/status.h"
#include "dist/compression/codecs/codec.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

std::vector<float> NormalGradient(int64_t elements, uint64_t seed);
GradientShape FilterShape(int64_t rows, int64_t columns);
GradientShape VectorShape(int64_t elements);

std::vector<std::byte> Encoded(const Codec& codec, const GradientShape& shape,
                               const EncodeContext& context, std::span<const float> gradient);
// With scale 1, into zeros. Ends the test process if it fails.
std::vector<float> Decoded(const Codec& codec, const GradientShape& shape,
                           const EncodeContext& context, std::span<const std::byte> payload);

// r vectors that are stored one after the other, and their products, in double.
using Matrix = std::vector<std::vector<double>>;
Matrix Vectors(std::span<const float> from, int64_t r);
double Dot(std::span<const double> a, std::span<const double> b);

// |a - b| / |b|, in double.
double RelativeError(std::span<const float> a, std::span<const float> b);

// Sends the same gradient `steps` times, with or without the residual of earlier steps. `error`:
// the relative error of the sum of all that arrived.
struct Feedback {
  double error = 0;
  double unaccounted = 0;  // relative: sum of gradients less what arrived less the residual
};
Feedback SendRepeatedly(const Codec& codec, const GradientShape& shape,
                        std::span<const float> gradient, int steps, bool keep_residual);

// One step of all ranks; returns what each of them unpacks.
std::vector<std::vector<float>> ReduceSketches(const std::vector<std::unique_ptr<Sketch>>& ranks,
                                               const EncodeContext& context,
                                               const std::vector<std::vector<float>>& gradients);

// Tries 100,000 payloads that Encode has not written: cut off, too long, random bytes, and valid
// ones with a few bytes changed. Each is either refused as DataLoss or changes only `sum`, which
// lies between guards. Returns the number of refused payloads.
int TryHostilePayloads(const Codec& codec, const GradientShape& shape,
                       const EncodeContext& context);
constexpr int kHostilePayloads = 100'000;

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COMPRESSION_SPARSE_GRADIENTS_H_
