// What the tests of codecs share: gradients, one encoding or decoding, instruction sets.
#ifndef RINGTAIL_TESTS_DIST_COMPRESSION_CODEC_RUNNER_H_
#define RINGTAIL_TESTS_DIST_COMPRESSION_CODEC_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/kernel_isa.h"
#include "dist/compression/codecs/codec.h"

namespace ringtail {

using Floats = std::vector<float>;
using Payload = std::vector<std::byte>;

constexpr CodecMoment kMoment = {.seed = 7, .step = 3, .parameter = 5, .rank = 2};

inline GradientShape VectorOf(int64_t elements) { return {.columns = elements}; }

Floats GaussianGradient(int64_t n, uint64_t seed = 1, float scale = 1);
// Normal numbers of magnitudes from 1e-4 to 1e4, zeros of both signs and denormals among them.
Floats MixedGradient(int64_t n, uint64_t seed = 1);

Payload Encode(const Codec& codec, const Floats& gradient, const CodecMoment& moment = kMoment);
// Of one's own payload, into zeros.
Floats Decode(const Codec& codec, const Payload& payload, int64_t n, float scale = 1,
              const CodecMoment& moment = kMoment);
Floats RoundTrip(const Codec& codec, const Floats& gradient);
// What a decoder says of a payload that came from elsewhere.
Status DecodeStatus(const Codec& codec, const Payload& payload, int64_t n);

float FloatAt(const Payload& payload, size_t offset);
void SetFloat(float value, size_t offset, Payload* payload);
uint8_t ByteAt(const Payload& payload, size_t offset);

double Distance(const Floats& a, const Floats& b);  // L2
double Length(const Floats& a);

// What the machine can run; the first call sees the machine, before any test selects less.
const std::vector<KernelIsa>& MachineIsas();

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COMPRESSION_CODEC_RUNNER_H_
