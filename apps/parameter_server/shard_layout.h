// ShardLayout: where the parameters of one server are, in the model's block and in its own.
//
//   model   | conv1 | bn1 | conv2 | fc |
//   shard   | bn1 | fc |                    each on a 64-byte boundary, as in a ParameterArena
//
// Thread-safety: immutable. Cost of Gather and Scatter: a copy.
#ifndef RINGTAIL_APPS_PARAMETER_SERVER_SHARD_LAYOUT_H_
#define RINGTAIL_APPS_PARAMETER_SERVER_SHARD_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"

namespace ringtail {

class ShardLayout {
 public:
  // Of the parameters with these numbers, ascending.
  ShardLayout(std::span<const Parameter> model, std::span<const size_t> chosen);

  int64_t elements() const { return elements_; }  // of the shard's block, with gaps
  // Where the i-th of the chosen parameters begins in the shard's block.
  int64_t own_offset(size_t i) const { return pieces_[i].own_offset; }

  // Between a block of the model's layout and one of the shard's. Gather sets the gaps to 0: what is
  // sent comes from memory of earlier messages, and a server sums and updates the whole block.
  void Gather(std::span<const float> model, std::span<float> own) const;
  void Scatter(std::span<const float> own, std::span<float> model) const;

 private:
  struct Piece {
    int64_t model_offset = 0, own_offset = 0, elements = 0;
  };
  std::vector<Piece> pieces_;
  int64_t elements_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_PARAMETER_SERVER_SHARD_LAYOUT_H_
