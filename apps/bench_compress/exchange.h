// Exchange: gradients on their way from one rank to itself, by a codec or as sketches.
// Thread-safety: one thread at a time.
#ifndef RINGTAIL_APPS_BENCH_COMPRESS_EXCHANGE_H_
#define RINGTAIL_APPS_BENCH_COMPRESS_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/bench_compress/bench_compress.h"
#include "apps/bench_compress/tensor_set.h"
#include "dist/compression/codecs/codec.h"

namespace ringtail {

class Exchange {
 public:
  explicit Exchange(const TensorSet* set) : set_(set) {
    for (const Tensor& tensor : set->tensors) decoded_.emplace_back(tensor.gradient.size());
  }
  virtual ~Exchange() = default;

  virtual int64_t PayloadBytes() const = 0;
  virtual void Encode() = 0;
  virtual void Decode() = 0;  // may add to what is there
  // As if nothing had been encoded before.
  virtual void Forget() = 0;

  // Of one step: fills in bytes, ratio, error and cosine.
  void Compare(CompressRate* rate);

 protected:
  const std::vector<Tensor>& tensors() const { return set_->tensors; }
  std::span<float> decoded(size_t tensor) { return decoded_[tensor]; }

  const CodecMoment moment_ = {.seed = 1};

 private:
  const TensorSet* const set_;
  std::vector<std::vector<float>> decoded_;
};

// `name`: of a codec or a sketch (dist/compression/codecs/codecs.h); `samples`: of a step. `set` must outlive
// it. InvalidArgument if the name is unknown.
StatusOr<std::unique_ptr<Exchange>> MakeExchange(const std::string& name, double samples,
                                                 const TensorSet* set);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_COMPRESS_EXCHANGE_H_
