#include "apps/bench_compress/exchange.h"

#include <algorithm>
#include <cmath>

#include "dist/compression/schemes.h"

namespace ringtail {
namespace {

EncodeContext ContextOf(const Tensor& tensor) { return {.shape = tensor.shape, .seed = 1}; }

class CodecExchange : public Exchange {
 public:
  CodecExchange(std::unique_ptr<Codec> codec, const TensorSet* set)
      : Exchange(set), codec_(std::move(codec)) {
    for (const Tensor& tensor : tensors()) {
      payloads_.emplace_back(codec_->PayloadBytes(ContextOf(tensor)));
    }
  }

  int64_t PayloadBytes() const override {
    int64_t bytes = 0;
    for (const std::vector<std::byte>& payload : payloads_) bytes += std::ssize(payload);
    return bytes;
  }
  void Encode() override {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      codec_->Encode(ContextOf(tensors()[i]), tensors()[i].gradient, payloads_[i]);
    }
  }
  void Decode() override {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      const Status status = codec_->DecodeAdd(ContextOf(tensors()[i]), payloads_[i], 1, decoded(i));
      RT_CHECK(status.ok(), status.ToString());  // of our own payload
    }
  }
  void Forget() override {}

 private:
  const std::unique_ptr<Codec> codec_;
  std::vector<std::vector<std::byte>> payloads_;
};

class SketchExchange : public Exchange {
 public:
  // One sketch per tensor.
  SketchExchange(std::vector<std::unique_ptr<Sketch>> sketches, const TensorSet* set)
      : Exchange(set), sketches_(std::move(sketches)) {
    int64_t most = 0;
    for (const auto& sketch : sketches_) most = std::max(most, sketch->TotalFloats());
    share_.resize(most);
  }

  int64_t PayloadBytes() const override {
    int64_t floats = 0;
    for (const auto& sketch : sketches_) floats += sketch->TotalFloats();
    return floats * static_cast<int64_t>(sizeof(float));
  }
  void Encode() override {
    for (size_t i = 0; i < sketches_.size(); ++i) {
      Sketch& sketch = *sketches_[i];
      const EncodeContext context = ContextOf(tensors()[i]);
      for (int round = 0; round < sketch.rounds(); ++round) {
        const auto share = std::span(share_).first(sketch.Floats(round));
        sketch.Pack(round, context, tensors()[i].gradient, share);
        sketch.Take(round, context, share);
      }
    }
  }
  void Decode() override {
    for (size_t i = 0; i < sketches_.size(); ++i) {
      sketches_[i]->Unpack(ContextOf(tensors()[i]), decoded(i));
    }
  }
  void Forget() override {
    for (const auto& sketch : sketches_) std::ranges::fill(sketch->state(), 0.0F);
  }

 private:
  const std::vector<std::unique_ptr<Sketch>> sketches_;
  std::vector<float> share_;  // of one round
};

}  // namespace

void Exchange::Compare(CompressRate* rate) {
  Forget();
  for (std::vector<float>& decoded : decoded_) std::ranges::fill(decoded, 0.0F);
  Encode();
  Decode();
  double error = 0, product = 0, gradient = 0, decoded = 0;
  for (size_t i = 0; i < decoded_.size(); ++i) {
    rate->bytes += std::ssize(decoded_[i]) * static_cast<int64_t>(sizeof(float));
    for (size_t j = 0; j < decoded_[i].size(); ++j) {
      const double a = tensors()[i].gradient[j], b = decoded_[i][j];
      error += (b - a) * (b - a);
      product += a * b;
      gradient += a * a;
      decoded += b * b;
    }
  }
  rate->payload_bytes = PayloadBytes();
  rate->ratio = static_cast<double>(rate->bytes) / static_cast<double>(rate->payload_bytes);
  // A gradient of zeros has no direction and nothing to lose.
  rate->relative_error = gradient > 0 ? std::sqrt(error / gradient) : 0;
  const double lengths = std::sqrt(gradient * decoded);
  rate->cosine = lengths > 0 ? product / lengths : 0;
}

StatusOr<std::unique_ptr<Exchange>> MakeExchange(const std::string& name, double samples,
                                                 const TensorSet* set) {
  RT_ASSIGN_OR_RETURN(const CompressionScheme scheme, FindPreset(name));
  const SchemeRun run{.samples = samples};
  std::unique_ptr<Exchange> exchange;
  if (std::unique_ptr<Codec> codec = MakeLayerScheme(scheme, {}, run).codec; codec != nullptr) {
    exchange = std::make_unique<CodecExchange>(std::move(codec), set);
    return exchange;
  }
  std::vector<std::unique_ptr<Sketch>> sketches;
  for (const Tensor& tensor : set->tensors) {
    sketches.push_back(MakeLayerScheme(scheme, tensor.shape, run).sketch);
  }
  exchange = std::make_unique<SketchExchange>(std::move(sketches), set);
  return exchange;
}

}  // namespace ringtail
