// Shared by the tests of codecs: gradients, presets, one encoding or decoding, instruction sets.
#ifndef RINGTAIL_TESTS_DIST_COMPRESSION_CODEC_RUNNER_H_
#define RINGTAIL_TESTS_DIST_COMPRESSION_CODEC_RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel_isa.h"
#include "dist/compression/codecs/codec.h"
#include "dist/compression/schemes.h"

namespace ringtail {

using Floats = std::vector<float>;
using Payload = std::vector<std::byte>;

// Without a shape: the functions below add it.
constexpr EncodeContext kContext = {.seed = 7, .step = 3, .parameter = 5, .rank = 2};

inline GradientShape VectorOf(int64_t elements) { return {.columns = elements}; }
// kContext with the shape of a vector.
inline EncodeContext ContextOf(int64_t elements) { return kContext.WithShape(VectorOf(elements)); }

// The codec of a preset (dist/compression/schemes.h).
std::unique_ptr<Codec> PresetCodec(std::string_view name, const SchemeRun& run = {});

Floats GaussianGradient(int64_t n, uint64_t seed = 1, float scale = 1);
// Normal numbers of magnitudes from 1e-4 to 1e4, zeros of both signs and denormals among them.
Floats MixedGradient(int64_t n, uint64_t seed = 1);

Payload Encode(const Codec& codec, const Floats& gradient, const EncodeContext& context = kContext);
// Of a payload of the codec, into zeros.
Floats Decode(const Codec& codec, const Payload& payload, int64_t n, float scale = 1,
              const EncodeContext& context = kContext);
Floats RoundTrip(const Codec& codec, const Floats& gradient);
// The result of decoding any bytes.
Status DecodeStatus(const Codec& codec, const Payload& payload, int64_t n);

float FloatAt(const Payload& payload, size_t offset);
void SetFloat(float value, size_t offset, Payload* payload);
uint8_t ByteAt(const Payload& payload, size_t offset);

double Distance(const Floats& a, const Floats& b);  // L2
double Length(const Floats& a);

// The instruction sets of the machine. The first call must come before a test selects one.
const std::vector<KernelIsa>& MachineIsas();

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_DIST_COMPRESSION_CODEC_RUNNER_H_
