// Parameters: all weights of a net in one block of f32, all gradients in another of the same
// layout.
//
// Parameters are ordered as backward produces their gradients (last layer first), so that a
// gradient bucket is a range of the block and can be sent while backward continues. Everything is
// plain row-major, PyTorch's shapes: convolution (OC, IC/groups, KH, KW), linear (OC, IC), vectors
// (C). Every parameter starts on a 64-byte boundary; the gaps stay zero. Buffers (batch norm's
// running statistics) have no gradient and a block of their own. What is fixed (weights and running
// statistics of frozen layers) is in neither: a third block, which nothing updates, averages or
// exchanges. Sharded parameters, of which other processes hold the other rows, are at the end of the
// block, in the order of backward among themselves: what all ranks hold is one range.
//
//   values   [ fc.weight .. conv2.weight conv1.weight | large1.weight large0.weight ]
//              replicated()                             sharded()
// Thread-safety: none; the trainer thread owns it.
#ifndef RINGTAIL_CORE_PARAMETER_H_
#define RINGTAIL_CORE_PARAMETER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/status.h"

namespace ringtail {

using Shape = std::vector<int64_t>;
int64_t NumElements(const Shape& shape);      // product, 1 for {}; the largest int64 on overflow
std::string ShapeString(const Shape& shape);  // "64x3x7x7"

enum class ParameterKind {
  kConvolutionWeight,
  kLinearWeight,
  kVector
};  // kVector: bias, batch norm

// Which rows of a parameter a process holds, where ranks divide it among them.
struct RowShard {
  int64_t first = 0, whole = 0;  // rows; whole 0: it is not divided
};

struct ParameterSpec {
  std::string name;  // "<layer>.weight"
  Shape shape;       // of the rows that this process holds
  ParameterKind kind = ParameterKind::kVector;
  // Layer groups between it and the loss: 0 for the last layer with weights (layers/net/depth.h).
  int depth = 0;
  RowShard shard;

  bool is_sharded() const { return shard.whole > 0; }
  Shape WholeShape() const;  // of the rows of all ranks
};

struct FixedSpecs {
  std::vector<ParameterSpec> parameters, buffers;
};

// Of `whole`, a parameter of spec.WholeShape(), the rows that this process holds.
std::span<const float> OwnRows(const ParameterSpec& spec, std::span<const float> whole);

// A view of one parameter (or buffer) inside its arena. Valid as long as the arena lives.
class ParameterArena;
struct Parameter {
  ParameterSpec spec;
  int64_t offset = 0;  // in floats from the start of the block
  int64_t elements = 0;
  bool is_buffer = false;
  bool is_fixed = false;
  const ParameterArena* arena = nullptr;

  std::span<float> value() const;  // looked up at each call: SwapValues changes it
  std::span<float> grad() const;   // of parameters that are not fixed
};

class ParameterArena {
 public:
  // Names must be unique over all lists (InvalidArgument) and a list may have at most 2^38
  // elements (1 TiB, else ResourceExhausted; whether the machine has the memory is for
  // core/machine/memory_limit.h to check). Values start at zero.
  static StatusOr<std::unique_ptr<ParameterArena>> Create(std::vector<ParameterSpec> parameters,
                                                          std::vector<ParameterSpec> buffers,
                                                          FixedSpecs fixed = {});

  ParameterArena(const ParameterArena&) = delete;  // parameters point to their arena
  ParameterArena& operator=(const ParameterArena&) = delete;

  std::span<const Parameter> parameters() const { return parameters_; }
  std::span<const Parameter> replicated() const { return parameters().first(num_replicated_); }
  std::span<const Parameter> sharded() const { return parameters().subspan(num_replicated_); }
  // Floats from the start of the block; without sharded parameters all of it.
  int64_t replicated_floats() const { return replicated_floats_; }
  std::span<const Parameter> buffers() const { return buffers_; }
  std::span<const Parameter> fixed() const { return fixed_; }   // parameters, then buffers
  const Parameter* FindParameter(std::string_view name) const;  // null if there is none
  const Parameter* FindBuffer(std::string_view name) const;

  std::span<float> values() const { return values_.floats(); }  // whole block, with gaps
  std::span<float> grads() const { return grads_.floats(); }
  std::span<float> buffer_values() const { return buffer_values_.floats(); }
  std::span<float> fixed_values() const { return fixed_values_.floats(); }
  // Elements without gaps and buffers, and how many of them are fixed.
  int64_t num_parameters() const { return num_parameters_; }
  int64_t num_fixed() const { return num_fixed_; }

  // Exchanges the weights and buffers with others of the same size, to evaluate averaged weights.
  void SwapValues(AlignedBuffer* values, AlignedBuffer* buffer_values);
  // The same with another arena of the same parameters and buffers.
  void SwapValues(ParameterArena* other);

 private:
  ParameterArena() = default;
  friend struct Parameter;
  std::vector<Parameter> parameters_, buffers_, fixed_;
  AlignedBuffer values_, grads_, buffer_values_, fixed_values_;
  int64_t num_parameters_ = 0, num_fixed_ = 0;
  size_t num_replicated_ = 0;
  int64_t replicated_floats_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_PARAMETER_H_
