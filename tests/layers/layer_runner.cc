#include "tests/layers/layer_runner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/random.h"
#include "layers/element_types/blob_elements.h"
#include "layers/net/initializer.h"
#include "tests/layers/test_algorithms.h"

namespace ringtail {
namespace {

constexpr size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};
constexpr std::byte kNanByte{0xFF};  // four of them are a NaN

template <typename Function>
void ForEachElement(const BlobDesc& d, int64_t channels, const Function& fn) {
  for (int64_t n = 0; n < d.N; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < d.plane(); ++p) {
        const int64_t block_row = n * d.channel_blocks() + c / d.block;
        fn(c, (n * d.C + c) * d.plane() + p, (block_row * d.plane() + p) * d.block + c % d.block);
      }
    }
  }
}

float ValueAt(const BlobDesc& desc, const float* blob, int64_t i) {
  return desc.type == BlobType::kBf16 ? Widen(ElementsOf<Bfloat16>(blob)[i]) : blob[i];
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes) : memory_(bytes + 2 * kGuardBytes), bytes_(bytes) {
  std::memset(memory_.data(), static_cast<int>(kGuard), memory_.size_bytes());
  FillWithNan();
}

std::byte* GuardedBuffer::data() const { return memory_.data() + kGuardBytes; }

void GuardedBuffer::FillWithNan() {
  if (bytes_ > 0) std::memset(data(), static_cast<int>(kNanByte), bytes_);
}

bool GuardedBuffer::GuardsIntact() const {
  const std::byte* begin = memory_.data();
  const auto is_guard = [](std::byte b) { return b == kGuard; };
  return std::all_of(begin, begin + kGuardBytes, is_guard) &&
         std::all_of(data() + bytes_, data() + bytes_ + kGuardBytes, is_guard);
}

LayerRunner::LayerRunner(Layer* layer, std::vector<BlobDesc> src, LayerRunnerOptions options)
    : layer_(layer), src_descs_(std::move(src)), options_(std::move(options)) {
  if (options_.needs_diff_src.empty()) options_.needs_diff_src.assign(src_descs_.size(), 1);
  step_.training = options_.training;
  step_.seed = options_.seed;
  status_ = Setup(layer);
}

Status LayerRunner::Setup(Layer* layer) {
  RT_ASSIGN_OR_RETURN(info_, layer->InferShape(src_descs_));
  std::vector<ParameterSpec> parameters, buffers;
  for (const ParameterRequest& request : info_.parameters) {
    (request.is_buffer ? buffers : parameters).push_back(request.spec);
  }
  RT_ASSIGN_OR_RETURN(arena_, ParameterArena::Create(parameters, buffers));
  for (const ParameterRequest& request : info_.parameters) {
    const std::string& name = request.spec.name;
    parameters_.push_back(request.is_buffer ? arena_->FindBuffer(name)
                                            : arena_->FindParameter(name));
    FillInitial(request, RngKey(options_.seed).With(kInitStream).With(name),
                parameters_.back()->value());
  }
  const auto needs = std::make_unique<bool[]>(src_descs_.size());
  std::copy(options_.needs_diff_src.begin(), options_.needs_diff_src.end(), needs.get());
  RT_ASSIGN_OR_RETURN(plan_, layer->Setup({.src = src_descs_,
                                           .dst_type = options_.dst_type,
                                           .parameters = parameters_,
                                           .training = options_.training,
                                           .needs_diff_src = {needs.get(), src_descs_.size()},
                                           .algorithms = TestAlgorithms()}));
  if (plan_.dst.type != options_.dst_type) problems_ += "Setup chose another type of dst\n";
  if (!plan_.dst.SameShape(info_.dst)) problems_ += "Setup and InferShape disagree on the shape\n";
  for (const BlobDesc& desc : src_descs_) {
    src_.emplace_back(desc.bytes());
    diff_src_.emplace_back(desc.bytes());
  }
  dst_ = GuardedBuffer(plan_.dst.bytes());
  diff_dst_ = GuardedBuffer(plan_.dst.bytes());
  state_ = GuardedBuffer(plan_.state_bytes);
  scratch_ = GuardedBuffer(plan_.scratch_bytes);
  return OkStatus();
}

// A layer whose backward reads src keeps it: in place is then for evaluation alone.
bool LayerRunner::ForwardInPlace() const {
  return options_.in_place && plan_.forward_in_place && plan_.dst == src_descs_[0] &&
         !(options_.training && plan_.backward_needs_src);
}

bool LayerRunner::BackwardInPlace() const {
  return options_.in_place && plan_.backward_in_place && plan_.dst == src_descs_[0] &&
         options_.needs_diff_src[0];
}

std::vector<float> LayerRunner::Forward(const std::vector<std::vector<float>>& src) {
  RT_CHECK(status_.ok(), status_.ToString());
  RT_CHECK(src.size() == src_.size(), "one vector per input");
  std::vector<const float*> pointers;
  for (size_t i = 0; i < src.size(); ++i) {
    CopyToLayout(src[i], src_descs_[i], src_[i].floats());
    pointers.push_back(src_[i].floats());
  }
  for (GuardedBuffer* buffer : {&dst_, &state_, &scratch_}) buffer->FillWithNan();
  float* dst = ForwardInPlace() ? src_[0].floats() : dst_.floats();
  layer_->Forward({.src = pointers,
                   .dst = dst,
                   .state = state_.data(),
                   .scratch = scratch_.data(),
                   .step = &step_});
  CheckMemory("Forward");
  CheckPadding(plan_.dst, dst, "dst");
  return CopyToPlain(plan_.dst, dst);
}

std::vector<std::vector<float>> LayerRunner::Backward(const std::vector<float>& diff_dst) {
  RT_CHECK(status_.ok() && options_.training, "Backward needs a layer that was set up to train");
  std::vector<const float*> src;
  std::vector<float*> diff_src;
  CopyToLayout(diff_dst, plan_.dst, diff_dst_.floats());
  for (size_t i = 0; i < src_.size(); ++i) {
    src.push_back(plan_.backward_needs_src ? src_[i].floats() : nullptr);
    diff_src_[i].FillWithNan();
    diff_src.push_back(options_.needs_diff_src[i] ? diff_src_[i].floats() : nullptr);
  }
  if (BackwardInPlace()) diff_src[0] = diff_dst_.floats();
  for (const Parameter* parameter : parameters_) {
    if (!parameter->is_buffer) std::fill(parameter->grad().begin(), parameter->grad().end(), NAN);
  }
  scratch_.FillWithNan();
  const float* dst = ForwardInPlace() ? src_[0].floats() : dst_.floats();
  layer_->Backward({.src = src,
                    .dst = plan_.backward_needs_dst ? dst : nullptr,
                    .diff_dst = diff_dst_.floats(),
                    .diff_src = diff_src,
                    .state = state_.data(),
                    .scratch = scratch_.data(),
                    .step = &step_});
  CheckMemory("Backward");
  std::vector<std::vector<float>> plain(src_.size());
  for (size_t i = 0; i < src_.size(); ++i) {
    if (diff_src[i] == nullptr) continue;
    CheckPadding(src_descs_[i], diff_src[i], fmt::format("diff_src[{}]", i));
    plain[i] = CopyToPlain(src_descs_[i], diff_src[i]);
  }
  return plain;
}

void LayerRunner::CheckMemory(const char* when) {
  const auto check = [&](const GuardedBuffer& buffer, const std::string& what) {
    if (!buffer.GuardsIntact()) problems_ += fmt::format("{} writes outside {}\n", when, what);
  };
  for (size_t i = 0; i < src_.size(); ++i) {
    check(src_[i], fmt::format("src[{}]", i));
    check(diff_src_[i], fmt::format("diff_src[{}]", i));
  }
  check(dst_, "dst");
  check(diff_dst_, "diff_dst");
  check(state_, "state");
  check(scratch_, "scratch");
}

void LayerRunner::CheckPadding(const BlobDesc& desc, const float* data, const std::string& what) {
  bool zero = true;
  ForEachElement(desc, desc.channel_blocks() * desc.block, [&](int64_t c, int64_t, int64_t i) {
    if (c >= desc.C && ValueAt(desc, data, i) != 0) zero = false;
  });
  if (!zero) problems_ += fmt::format("padding channels of {} are not zero\n", what);
}

int64_t PlainElements(const BlobDesc& desc) { return desc.N * desc.C * desc.plane(); }

void CopyToLayout(std::span<const float> plain, const BlobDesc& desc, float* blob) {
  RT_CHECK(static_cast<int64_t>(plain.size()) == PlainElements(desc), desc.ShapeString());
  std::memset(blob, 0, desc.bytes());
  ForEachElement(desc, desc.C, [&](int64_t, int64_t from, int64_t to) {
    if (desc.type == BlobType::kBf16) {
      ElementsOf<Bfloat16>(blob)[to] = Narrow(plain[from]);
    } else {
      blob[to] = plain[from];
    }
  });
}

std::vector<float> CopyToPlain(const BlobDesc& desc, const float* blob) {
  std::vector<float> plain(PlainElements(desc));
  ForEachElement(desc, desc.C,
                 [&](int64_t, int64_t to, int64_t from) { plain[to] = ValueAt(desc, blob, from); });
  return plain;
}

std::vector<float> RandomPlain(const BlobDesc& desc, uint64_t seed, float low, float high) {
  Rng rng(RngKey(seed).With(kTestStream));
  std::vector<float> plain(PlainElements(desc));
  for (float& v : plain) v = rng.Uniform(low, high);
  return plain;
}

}  // namespace ringtail
