#include "tests/dist/compression/codec_runner.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace ringtail {

Floats GaussianGradient(int64_t n, uint64_t seed, float scale) {
  Rng rng(RngKey(seed).With(kTestStream));
  Floats gradient(static_cast<size_t>(n));
  for (float& element : gradient) element = scale * rng.Normal();
  return gradient;
}

Floats MixedGradient(int64_t n, uint64_t seed) {
  Rng rng(RngKey(seed).With(kTestStream));
  Floats gradient(static_cast<size_t>(n));
  for (float& element : gradient) {
    const uint64_t kind = rng.Below(20);
    element = rng.Normal() * std::pow(10.0F, rng.Uniform(-4, 4));
    if (kind == 0) element = 0.0F;
    if (kind == 1) element = -0.0F;
    if (kind == 2) element = 1e-40F;
  }
  return gradient;
}

std::unique_ptr<Codec> PresetCodec(std::string_view name, const SchemeRun& run) {
  const StatusOr<CompressionScheme> scheme = FindPreset(name);
  RT_CHECK(scheme.ok(), scheme.status().ToString());
  LayerScheme layer = MakeLayerScheme(*scheme, {}, run);
  RT_CHECK(layer.codec != nullptr, "the preset is a sketch");
  return std::move(layer.codec);
}

Payload Encode(const Codec& codec, const Floats& gradient, const EncodeContext& context) {
  const EncodeContext of_vector = context.WithShape(VectorOf(std::ssize(gradient)));
  // A byte that is not written cannot pass for a zero.
  Payload payload(static_cast<size_t>(codec.PayloadBytes(of_vector)), std::byte{0xa5});
  codec.Encode(of_vector, gradient, payload);
  return payload;
}

Floats Decode(const Codec& codec, const Payload& payload, int64_t n, float scale,
              const EncodeContext& context) {
  Floats sum(static_cast<size_t>(n));
  const Status status = codec.DecodeAdd(context.WithShape(VectorOf(n)), payload, scale, sum);
  RT_CHECK(status.ok(), status.ToString());
  return sum;
}

Floats RoundTrip(const Codec& codec, const Floats& gradient) {
  return Decode(codec, Encode(codec, gradient), std::ssize(gradient));
}

Status DecodeStatus(const Codec& codec, const Payload& payload, int64_t n) {
  Floats sum(static_cast<size_t>(n));
  return codec.DecodeAdd(ContextOf(n), payload, 1, sum);
}

float FloatAt(const Payload& payload, size_t offset) {
  float value = 0;
  std::memcpy(&value, payload.data() + offset, sizeof(value));
  return value;
}

void SetFloat(float value, size_t offset, Payload* payload) {
  std::memcpy(payload->data() + offset, &value, sizeof(value));
}

uint8_t ByteAt(const Payload& payload, size_t offset) {
  return std::to_integer<uint8_t>(payload.at(offset));
}

double Distance(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

double Length(const Floats& a) { return Distance(a, Floats(a.size())); }

const std::vector<KernelIsa>& MachineIsas() {
  static const std::vector<KernelIsa> isas = [] {
    std::vector<KernelIsa> all = {KernelIsa::kBaseline, KernelIsa::kAvx2, KernelIsa::kAvx512};
    all.resize(static_cast<size_t>(SelectedKernelIsa()) + 1);
    return all;
  }();
  return isas;
}

}  // namespace ringtail
