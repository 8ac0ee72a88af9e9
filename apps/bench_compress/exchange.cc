#include "apps/bench_compress/exchange.h"

#include <algorithm>
#include <cmath>

#include "dist/compression/codecs/codecs.h"

namespace ringtail {
namespace {

class CodecExchange : public Exchange {
 public:
  CodecExchange(std::unique_ptr<Codec> codec, const TensorSet* set)
      : Exchange(set), codec_(std::move(codec)) {
    for (const Tensor& tensor : tensors()) {
      payloads_.emplace_back(codec_->PayloadBytes(tensor.shape, moment_));
    }
  }

  int64_t PayloadBytes() const override {
    int64_t bytes = 0;
    for (const std::vector<std::byte>& payload : payloads_) bytes += std::ssize(payload);
    return bytes;
  }
  void Encode() override {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      codec_->Encode(tensors()[i].shape, moment_, tensors()[i].gradient, payloads_[i]);
    }
  }
  void Decode() override {
    for (size_t i = 0; i < payloads_.size(); ++i) {
      const Status status =
          codec_->DecodeAdd(tensors()[i].shape, moment_, payloads_[i], 1, decoded(i));
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
  SketchExchange(const NamedSketch& named, const TensorSet* set) : Exchange(set) {
    int64_t most = 0;
    for (const Tensor& tensor : tensors()) {
      sketches_.push_back(named.make(tensor.shape));
      most = std::max(most, sketches_.back()->TotalFloats());
    }
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
      for (int round = 0; round < sketch.rounds(); ++round) {
        const auto share = std::span(share_).first(sketch.Floats(round));
        sketch.Pack(round, moment_, tensors()[i].gradient, share);
        sketch.Take(round, moment_, share);
      }
    }
  }
  void Decode() override {
    for (size_t i = 0; i < sketches_.size(); ++i) sketches_[i]->Unpack(moment_, decoded(i));
  }
  void Forget() override {
    for (const auto& sketch : sketches_) std::ranges::fill(sketch->state(), 0.0F);
  }

 private:
  std::vector<std::unique_ptr<Sketch>> sketches_;
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
  // A gradient of zeros has no direction, and nothing that could be lost.
  rate->relative_error = gradient > 0 ? std::sqrt(error / gradient) : 0;
  const double lengths = std::sqrt(gradient * decoded);
  rate->cosine = lengths > 0 ? product / lengths : 0;
}

StatusOr<std::unique_ptr<Exchange>> MakeExchange(const std::string& name, double samples,
                                                 const TensorSet* set) {
  std::unique_ptr<Exchange> exchange;
  if (const NamedSketch* const sketch = FindSketch(name); sketch != nullptr) {
    exchange = std::make_unique<SketchExchange>(*sketch, set);
    return exchange;
  }
  RT_ASSIGN_OR_RETURN(std::unique_ptr<Codec> codec, MakeCodec(name, {.samples = samples}));
  exchange = std::make_unique<CodecExchange>(std::move(codec), set);
  return exchange;
}

}  // namespace ringtail
