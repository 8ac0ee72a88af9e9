#include "core/parameter.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr int64_t kAlignFloats = 16;  // 64 bytes
constexpr int64_t kMaxElements = int64_t{1} << 38;

// Refuses lists whose elements do not fit into a block, so that their sum cannot overflow.
Status CheckSizes(const std::vector<ParameterSpec>& specs) {
  int64_t sum = 0;
  for (const ParameterSpec& spec : specs) {
    const int64_t elements = NumElements(spec.shape);
    if (elements > kMaxElements - sum) {
      return ResourceExhausted("parameter '" + spec.name + "' of " + ShapeString(spec.shape) +
                               " makes the net larger than 1 TiB; make the layer smaller");
    }
    sum += elements;
  }
  return {};
}

// Places `specs` one after the other from `offset` on; returns the end in floats.
int64_t Place(std::vector<ParameterSpec> specs, const Parameter& like, int64_t offset,
              std::vector<Parameter>* out) {
  for (ParameterSpec& spec : specs) {
    Parameter p = like;
    p.elements = NumElements(spec.shape);
    p.spec = std::move(spec);
    p.offset = offset;
    offset += (p.elements + kAlignFloats - 1) / kAlignFloats * kAlignFloats;
    out->push_back(std::move(p));
  }
  return offset;
}

const Parameter* Find(std::span<const Parameter> list, std::string_view name) {
  for (const Parameter& p : list) {
    if (p.spec.name == name) return &p;
  }
  return nullptr;
}

}  // namespace

Shape ParameterSpec::WholeShape() const {
  Shape whole = shape;
  if (is_sharded()) whole[0] = shard.whole;
  return whole;
}

std::span<const float> OwnRows(const ParameterSpec& spec, std::span<const float> whole) {
  if (!spec.is_sharded()) return whole;
  const int64_t own = NumElements(spec.shape), row = own / spec.shape[0];
  return whole.subspan(spec.shard.first * row, own);
}

int64_t NumElements(const Shape& shape) {
  int64_t n = 1;
  for (const int64_t d : shape) {
    RT_CHECK(d >= 0, "a dimension is negative");
    if (d == 0) return 0;
    if (__builtin_mul_overflow(n, d, &n)) n = std::numeric_limits<int64_t>::max();
  }
  return n;
}

std::string ShapeString(const Shape& shape) {
  std::string s;
  for (int64_t d : shape) s += (s.empty() ? "" : "x") + std::to_string(d);
  return s;
}

std::span<float> Parameter::value() const {
  const AlignedBuffer& block = is_fixed    ? arena->fixed_values_
                               : is_buffer ? arena->buffer_values_
                                           : arena->values_;
  return block.floats().subspan(offset, elements);
}

std::span<float> Parameter::grad() const {
  RT_CHECK(!is_buffer && !is_fixed, "a buffer has no gradient, nor has what is fixed");
  return arena->grads_.floats().subspan(offset, elements);
}

StatusOr<std::unique_ptr<ParameterArena>> ParameterArena::Create(
    std::vector<ParameterSpec> parameters, std::vector<ParameterSpec> buffers, FixedSpecs fixed) {
  std::unordered_set<std::string_view> names;
  for (const auto* list : {&parameters, &buffers, &fixed.parameters, &fixed.buffers}) {
    RT_RETURN_IF_ERROR(CheckSizes(*list));
    for (const ParameterSpec& spec : *list) {
      if (!names.insert(spec.name).second) {
        return InvalidArgument("parameter '" + spec.name +
                               "' exists twice; give the layers different names");
      }
    }
  }
  std::unique_ptr<ParameterArena> arena(new ParameterArena);
  for (const ParameterSpec& spec : fixed.parameters) arena->num_fixed_ += NumElements(spec.shape);
  arena->num_parameters_ = arena->num_fixed_;
  for (const ParameterSpec& spec : parameters) arena->num_parameters_ += NumElements(spec.shape);
  const Parameter of_arena{.arena = arena.get()};
  Parameter buffer = of_arena, fixed_parameter = of_arena, fixed_buffer = of_arena;
  buffer.is_buffer = fixed_buffer.is_buffer = true;
  fixed_parameter.is_fixed = fixed_buffer.is_fixed = true;
  const auto sharded = std::stable_partition(parameters.begin(), parameters.end(),
                                             [](const auto& spec) { return !spec.is_sharded(); });
  arena->num_replicated_ = sharded - parameters.begin();
  const int64_t size = Place(std::move(parameters), of_arena, 0, &arena->parameters_);
  arena->replicated_floats_ = arena->sharded().empty() ? size : arena->sharded().front().offset;
  const int64_t buffer_size = Place(std::move(buffers), buffer, 0, &arena->buffers_);
  int64_t fixed_size = Place(std::move(fixed.parameters), fixed_parameter, 0, &arena->fixed_);
  fixed_size = Place(std::move(fixed.buffers), fixed_buffer, fixed_size, &arena->fixed_);
  arena->values_ = AlignedBuffer(size * sizeof(float));
  arena->grads_ = AlignedBuffer(size * sizeof(float));
  arena->buffer_values_ = AlignedBuffer(buffer_size * sizeof(float));
  arena->fixed_values_ = AlignedBuffer(fixed_size * sizeof(float));
  return arena;
}

const Parameter* ParameterArena::FindParameter(std::string_view name) const {
  return Find(parameters_, name);
}
const Parameter* ParameterArena::FindBuffer(std::string_view name) const {
  return Find(buffers_, name);
}

void ParameterArena::SwapValues(AlignedBuffer* values, AlignedBuffer* buffer_values) {
  RT_CHECK(values->size_bytes() == values_.size_bytes(), "SwapValues: sizes differ");
  RT_CHECK(buffer_values->size_bytes() == buffer_values_.size_bytes(), "SwapValues: sizes differ");
  values_.swap(*values);
  buffer_values_.swap(*buffer_values);
}

void ParameterArena::SwapValues(ParameterArena* other) {
  SwapValues(&other->values_, &other->buffer_values_);
}

}  // namespace ringtail
