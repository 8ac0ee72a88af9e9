// Exchange: sends gradients from one rank to itself, by a codec or as sketches.
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

namespace ringtail {

class Exchange {
 public:
  explicit Exchange(const TensorSet* set) : set_(set) {
    for (const Tensor& tensor : set->tensors) decoded_.emplace_back(tensor.gradient.size());
  }
  virtual ~Exchange() = default;

  virtual int64_t PayloadBytes() const = 0;
  virtual void Encode() = 0;
  virtual void Decode() = 0;  // may add to decoded()
  virtual void Forget() = 0;  // resets the state to that before the first Encode

  // Does one step and fills in bytes, ratio, error and cosine.
  void Compare(CompressRate* rate);

 protected:
  const std::vector<Tensor>& tensors() const { return set_->tensors; }
  std::span<float> decoded(size_t tensor) { return decoded_[tensor]; }

 private:
  const TensorSet* const set_;
  std::vector<std::vector<float>> decoded_;
};

// `name`: of a preset (dist/compression/schemes.h). `samples`: in a step. `set` must outlive the
// result. InvalidArgument if the name is unknown.
StatusOr<std::unique_ptr<Exchange>> MakeExchange(const std::string& name, double samples,
                                                 const TensorSet* set);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_COMPRESS_EXCHANGE_H_
