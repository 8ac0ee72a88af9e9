#include "core/parameter.h"

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

// Places `specs` one after the other; returns the size of the block in floats.
int64_t Place(std::vector<ParameterSpec> specs, bool is_buffer, const ParameterArena* arena,
              std::vector<Parameter>* out) {
  int64_t offset = 0;
  for (ParameterSpec& spec : specs) {
    Parameter p;
    p.elements = NumElements(spec.shape);
    p.spec = std::move(spec);
    p.offset = offset;
    p.is_buffer = is_buffer;
    p.arena = arena;
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
  const AlignedBuffer& block = is_buffer ? arena->buffer_values_ : arena->values_;
  return block.floats().subspan(offset, elements);
}

std::span<float> Parameter::grad() const {
  RT_CHECK(!is_buffer, "a buffer has no gradient");
  return arena->grads_.floats().subspan(offset, elements);
}

StatusOr<std::unique_ptr<ParameterArena>> ParameterArena::Create(
    std::vector<ParameterSpec> parameters, std::vector<ParameterSpec> buffers) {
  RT_RETURN_IF_ERROR(CheckSizes(parameters));
  RT_RETURN_IF_ERROR(CheckSizes(buffers));
  std::unordered_set<std::string_view> names;
  for (const auto* list : {&parameters, &buffers}) {
    for (const ParameterSpec& spec : *list) {
      if (!names.insert(spec.name).second) {
        return InvalidArgument("parameter '" + spec.name +
                               "' exists twice; give the layers different names");
      }
    }
  }
  std::unique_ptr<ParameterArena> arena(new ParameterArena);
  for (const ParameterSpec& spec : parameters) arena->num_parameters_ += NumElements(spec.shape);
  const int64_t size = Place(std::move(parameters), false, arena.get(), &arena->parameters_);
  const int64_t buffer_size = Place(std::move(buffers), true, arena.get(), &arena->buffers_);
  arena->values_ = AlignedBuffer(size * sizeof(float));
  arena->grads_ = AlignedBuffer(size * sizeof(float));
  arena->buffer_values_ = AlignedBuffer(buffer_size * sizeof(float));
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
