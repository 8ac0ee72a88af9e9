#include "layers/convolution/onednn_convolution.h"

#include <string>
#include <utility>
#include <vector>

#include "layers/onednn/dnnl_util.h"

namespace ringtail {
namespace {

using Memory = dnnl::memory;
using Port = DnnlPort;
using Tensors = ConvolutionTensors;
constexpr auto kF32 = Memory::data_type::f32;
constexpr auto kBf16 = Memory::data_type::bf16;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// A problem in oneDNN's words: everything that the three primitive descriptors need.
struct Dims {
  Memory::dims weight, bias, stride, dilation, padding_begin, padding_end;
  Activation activation;
  bool training;
  Memory::data_type operands;

  Memory::desc PlainWeights() const {
    using Tag = Memory::format_tag;
    return {weight, kF32, weight.size() == 5 ? Tag::goihw : Tag::oihw};
  }
  Memory::desc Weights() const { return {weight, operands, Memory::format_tag::any}; }
  Memory::desc DiffWeights() const { return {weight, kF32, Memory::format_tag::any}; }
  Memory::desc Bias() const {
    return bias.empty() ? Memory::desc() : Memory::desc(bias, kF32, Memory::format_tag::x);
  }
};

Dims MakeDims(const ConvolutionProblem& p) {
  const Window& w = p.window;
  Dims dims{.weight = {p.dst.C / p.groups, p.src.C / p.groups, w.KH, w.KW},
            .bias = {},
            .stride = {w.SH, w.SW},
            .dilation = {w.DH - 1, w.DW - 1},
            .padding_begin = {w.PT, w.PL},
            .padding_end = {w.PB, w.PR},
            .activation = p.activation,
            .training = p.training,
            .operands = p.dst.type == BlobType::kBf16 ? kBf16 : kF32};
  if (p.groups > 1) dims.weight.insert(dims.weight.begin(), p.groups);
  if (p.bias) dims.bias = {p.dst.C};
  return dims;
}

using ForwardDesc = dnnl::convolution_forward::primitive_desc;
using DataDesc = dnnl::convolution_backward_data::primitive_desc;
using WeightsDesc = dnnl::convolution_backward_weights::primitive_desc;

ForwardDesc DescribeForward(const Dims& d, const Memory::desc& src, const Memory::desc& dst) {
  const auto kind =
      d.training ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return {{kind, kDirect, src, d.Weights(), d.Bias(), dst, d.stride, d.dilation, d.padding_begin,
           d.padding_end},
          UserScratchpadWith(d.activation),
          DnnlEngine()};
}

DataDesc DescribeBackwardData(const Dims& d, const Memory::desc& diff_src,
                              const Memory::desc& diff_dst, const ForwardDesc& forward) {
  return {{kDirect, diff_src, d.Weights(), diff_dst, d.stride, d.dilation, d.padding_begin,
           d.padding_end},
          UserScratchpad(),
          DnnlEngine(),
          forward};
}

WeightsDesc DescribeBackwardWeights(const Dims& d, const Memory::desc& src,
                                    const Memory::desc& diff_dst, const ForwardDesc& forward) {
  return {{kDirect, src, d.DiffWeights(), d.Bias(), diff_dst, d.stride, d.dilation, d.padding_begin,
           d.padding_end},
          UserScratchpad(),
          DnnlEngine(),
          forward};
}

// The primitive for the layouts that the net has, if oneDNN is fast there; otherwise the one for
// the layouts that oneDNN prefers, and the ports reorder.
template <typename Create>
auto CreateFast(const Create& create, const Memory::desc& given_a, const Memory::desc& given_b,
                const Memory::desc& any_a, const Memory::desc& any_b) {
  try {
    auto given = create(given_a, given_b);
    if (IsFastImplementation(given.impl_info_str())) return given;
    auto preferred = create(any_a, any_b);
    return IsFastImplementation(preferred.impl_info_str()) ? preferred : given;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) throw;
    return create(any_a, any_b);
  }
}

// Any of the three primitives, with a port for each tensor.
class OneDnnConvolution : public ConvolutionAlgorithm {
 public:
  template <typename Desc>
  explicit OneDnnConvolution(const Desc& desc)
      : name_(desc.impl_info_str()),
        scratchpad_(desc.scratchpad_desc(), DnnlEngine(), DNNL_MEMORY_NONE),
        scratchpad_offset_(scratch_.AddBytes(desc.scratchpad_desc().get_size())) {}

  void Read(int argument, const float* Tensors::*tensor, const Memory::desc& caller,
            const Memory::desc& primitive) {
    inputs_.push_back({argument, tensor, Port(Port::Direction::kIn, caller, primitive, &scratch_)});
  }
  void Write(int argument, float* Tensors::*tensor, const Memory::desc& caller,
             const Memory::desc& primitive) {
    outputs_.push_back(
        {argument, tensor, Port(Port::Direction::kOut, caller, primitive, &scratch_)});
  }
  void set_primitive(dnnl::primitive primitive) { primitive_ = std::move(primitive); }

  // In the name, where oneDNN's does not say it.
  void MarkBf16() {
    if (name_.find("bf16") == std::string::npos) name_ += ":bf16";
  }

  std::string name() const override { return name_; }
  size_t scratch_bytes() const override { return scratch_.bytes(); }

  void Run(const Tensors& tensors) override {
    SetHandle(&scratchpad_, tensors.scratch + scratchpad_offset_);
    arguments_[DNNL_ARG_SCRATCHPAD] = scratchpad_;
    for (auto& [argument, tensor, port] : inputs_) {
      arguments_[argument] = port.Begin(tensors.*tensor, tensors.scratch);
    }
    for (auto& [argument, tensor, port] : outputs_) {
      arguments_[argument] = port.Begin(tensors.*tensor, tensors.scratch);
    }
    primitive_.execute(DnnlStream(), arguments_);
    for (auto& output : outputs_) output.port.End();
  }

 private:
  template <typename Pointer>
  struct Argument {
    int argument;
    Pointer Tensors::*tensor;
    Port port;
  };

  std::string name_;
  ScratchLayout scratch_;
  dnnl::primitive primitive_;
  Memory scratchpad_;
  size_t scratchpad_offset_;
  std::vector<Argument<const float*>> inputs_;
  std::vector<Argument<float*>> outputs_;
  DnnlArgs arguments_;  // the same entries in every call
};

ForwardDesc FastForward(const ConvolutionProblem& problem, const Dims& dims) {
  const auto describe = [&](const Memory::desc& src, const Memory::desc& dst) {
    return DescribeForward(dims, src, dst);
  };
  const Memory::desc any_dst = AnyLayout(problem.dst);
  return CreateFast(describe, ToDnnl(problem.src), any_dst, AnyLayout(problem.src), any_dst);
}

// The forward primitive that backward primitives are created from, beside their own layouts.
ForwardDesc Hint(const ConvolutionProblem& problem, const Dims& dims) {
  return DescribeForward(dims, AnyLayout(problem.src), AnyLayout(problem.dst));
}

std::unique_ptr<OneDnnConvolution> CreateForward(const ConvolutionProblem& p,
                                                 const ConvolutionProblem& product) {
  const Dims dims = MakeDims(product);
  const ForwardDesc desc = FastForward(product, dims);
  auto forward = std::make_unique<OneDnnConvolution>(desc);
  forward->set_primitive(dnnl::convolution_forward(desc));
  forward->Read(DNNL_ARG_SRC, &Tensors::src, ToDnnl(p.src), desc.src_desc());
  forward->Read(DNNL_ARG_WEIGHTS, &Tensors::weight, dims.PlainWeights(), desc.weights_desc());
  if (p.bias) forward->Read(DNNL_ARG_BIAS, &Tensors::bias, dims.Bias(), dims.Bias());
  forward->Write(DNNL_ARG_DST, &Tensors::dst, ToDnnl(p.dst), desc.dst_desc());
  return forward;
}

std::unique_ptr<OneDnnConvolution> CreateBackwardData(const ConvolutionProblem& p,
                                                      const ConvolutionProblem& product) {
  const Dims dims = MakeDims(product);
  const ForwardDesc hint = Hint(product, dims);
  const auto describe = [&](const Memory::desc& src, const Memory::desc& dst) {
    return DescribeBackwardData(dims, src, dst, hint);
  };
  const DataDesc desc = CreateFast(describe, ToDnnl(product.src), ToDnnl(product.dst),
                                   AnyLayout(product.src), AnyLayout(product.dst));
  auto data = std::make_unique<OneDnnConvolution>(desc);
  data->set_primitive(dnnl::convolution_backward_data(desc));
  data->Read(DNNL_ARG_DIFF_DST, &Tensors::diff_dst, ToDnnl(p.dst), desc.diff_dst_desc());
  data->Read(DNNL_ARG_WEIGHTS, &Tensors::weight, dims.PlainWeights(), desc.weights_desc());
  data->Write(DNNL_ARG_DIFF_SRC, &Tensors::diff_src, ToDnnl(p.src), desc.diff_src_desc());
  return data;
}

std::unique_ptr<OneDnnConvolution> CreateBackwardWeights(const ConvolutionProblem& p,
                                                         const ConvolutionProblem& product) {
  const Dims dims = MakeDims(product);
  const ForwardDesc hint = Hint(product, dims);
  const auto describe = [&](const Memory::desc& src, const Memory::desc& dst) {
    return DescribeBackwardWeights(dims, src, dst, hint);
  };
  const WeightsDesc desc = CreateFast(describe, ToDnnl(product.src), ToDnnl(product.dst),
                                      AnyLayout(product.src), AnyLayout(product.dst));
  auto weights = std::make_unique<OneDnnConvolution>(desc);
  weights->set_primitive(dnnl::convolution_backward_weights(desc));
  weights->Read(DNNL_ARG_SRC, &Tensors::src, ToDnnl(p.src), desc.src_desc());
  weights->Read(DNNL_ARG_DIFF_DST, &Tensors::diff_dst, ToDnnl(p.dst), desc.diff_dst_desc());
  weights->Write(DNNL_ARG_DIFF_WEIGHTS, &Tensors::diff_weight, dims.PlainWeights(),
                 desc.diff_weights_desc());
  if (p.bias) weights->Write(DNNL_ARG_DIFF_BIAS, &Tensors::diff_bias, dims.Bias(), dims.Bias());
  return weights;
}

// `p` by a primitive for `product`, which is the same on blobs of the types that the primitive
// computes on.
std::unique_ptr<OneDnnConvolution> Create(const ConvolutionProblem& p,
                                          const ConvolutionProblem& product,
                                          ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::kForward:
      return CreateForward(p, product);
    case ConvolutionDirection::kBackwardData:
      return CreateBackwardData(p, product);
    case ConvolutionDirection::kBackwardWeights:
      return CreateBackwardWeights(p, product);
    case ConvolutionDirection::kBackward:
      break;
  }
  return nullptr;
}

// Whether a tap of the window lies in the padding wherever the window is.
bool HasTapWithoutPixels(const ConvolutionProblem& p) {
  const auto reads_nothing = [](int64_t taps, int64_t dilation, int64_t stride, int64_t padding,
                                int64_t pixels, int64_t outputs) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t first = tap * dilation - padding;  // the pixel that the first output reads
      const int64_t skipped = first < 0 ? (-first + stride - 1) / stride : 0;  // outputs before 0
      if (skipped >= outputs || first + skipped * stride >= pixels) return true;
    }
    return false;
  };
  const Window& w = p.window;
  return reads_nothing(w.KH, w.DH, w.SH, w.PT, p.src.H, p.dst.H) ||
         reads_nothing(w.KW, w.DW, w.SW, w.PL, p.src.W, p.dst.W);
}

}  // namespace

OneDnnOutput OneDnnOutputOf(const ConvolutionProblem& problem) {
  const ForwardDesc desc = FastForward(problem, MakeDims(problem));
  const int64_t block = BlockOf(desc.dst_desc());
  return {.block = block != 0 ? block : 1, .is_fast = IsFastImplementation(desc.impl_info_str())};
}

std::unique_ptr<ConvolutionAlgorithm> CreateOneDnnConvolution(const ConvolutionProblem& problem,
                                                              ConvolutionDirection direction) {
  return Create(problem, problem, direction);
}

std::unique_ptr<ConvolutionAlgorithm> CreateOneDnnBf16Convolution(
    const ConvolutionProblem& problem, ConvolutionDirection direction) try {
  // oneDNN 2.6.3's AMX kernel leaves the gradients of such taps as it finds them.
  if (direction == ConvolutionDirection::kBackwardWeights && HasTapWithoutPixels(problem)) {
    return nullptr;
  }
  ConvolutionProblem product = problem;
  product.src.type = product.dst.type = BlobType::kBf16;
  auto algorithm = Create(problem, product, direction);
  if (algorithm == nullptr || !IsFastImplementation(algorithm->name())) return nullptr;
  algorithm->MarkBf16();
  return algorithm;
} catch (const dnnl::error& error) {
  if (error.status != dnnl_unimplemented) throw;
  return nullptr;
}

}  // namespace ringtail
