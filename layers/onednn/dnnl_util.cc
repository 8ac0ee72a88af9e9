#include "layers/onednn/dnnl_util.h"

#include <fmt/core.h>

#include <string_view>

namespace ringtail {
namespace {

dnnl::memory::dims Dims(const BlobDesc& d) { return {d.N, d.C, d.H, d.W}; }

dnnl::memory::data_type DataType(BlobType type) {
  switch (type) {
    case BlobType::kF32:
      return dnnl::memory::data_type::f32;
    case BlobType::kBf16:
      return dnnl::memory::data_type::bf16;
  }
  RT_CHECK(false, "no such element type");
}

}  // namespace

const dnnl::engine& DnnlEngine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::stream& DnnlStream() {
  static dnnl::stream stream(DnnlEngine());
  return stream;
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

dnnl::primitive_attr UserScratchpadWith(Activation fused) {
  dnnl::primitive_attr attr = UserScratchpad();
  dnnl::post_ops ops;
  switch (fused) {
    case Activation::kNone:
      return attr;
    case Activation::kRelu:  // cheaper than a clip
      ops.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
      break;
    case Activation::kRelu6:
      ops.append_eltwise(1, dnnl::algorithm::eltwise_clip, LowerBound(fused), UpperBound(fused));
      break;
  }
  RT_CHECK(ops.len() == 1, "no such activation");
  attr.set_post_ops(ops);
  return attr;
}

dnnl::memory::desc ToDnnl(const BlobDesc& desc) {
  using Tag = dnnl::memory::format_tag;
  const Tag tag = desc.block == 16 ? Tag::nChw16c : desc.block == 8 ? Tag::nChw8c : Tag::nchw;
  return {Dims(desc), DataType(desc.type), tag};
}

dnnl::memory::desc AnyLayout(const BlobDesc& desc) {
  return {Dims(desc), DataType(desc.type), dnnl::memory::format_tag::any};
}

int64_t BlockOf(const dnnl::memory::desc& desc) {
  BlobDesc blob{desc.dims()[0], desc.dims()[1], desc.dims()[2], desc.dims()[3]};
  for (const int64_t block : {1, 8, 16}) {
    blob.block = block;
    if (ToDnnl(blob) == desc) return block;
  }
  return 0;
}

bool IsFastImplementation(const std::string& impl_info) {
  return impl_info.starts_with("jit") || impl_info.starts_with("brg");
}

DnnlPort::DnnlPort(Direction direction, const dnnl::memory::desc& caller,
                   const dnnl::memory::desc& primitive, ScratchLayout* scratch)
    : direction_(direction), caller_(caller, DnnlEngine(), DNNL_MEMORY_NONE) {
  if (caller == primitive) return;
  inner_ = dnnl::memory(primitive, DnnlEngine(), DNNL_MEMORY_NONE);
  const bool in = direction == Direction::kIn;
  const dnnl::reorder::primitive_desc reorder(DnnlEngine(), in ? caller : primitive, DnnlEngine(),
                                              in ? primitive : caller, UserScratchpad());
  reorder_ = dnnl::reorder(reorder);
  scratchpad_ = dnnl::memory(reorder.scratchpad_desc(), DnnlEngine(), DNNL_MEMORY_NONE);
  offset_ = scratch->AddBytes(primitive.get_size());
  scratchpad_offset_ = scratch->AddBytes(reorder.scratchpad_desc().get_size());
}

const dnnl::memory& DnnlPort::Begin(const void* caller_data, std::byte* scratch) {
  SetHandle(&caller_, caller_data);
  if (!copies()) return caller_;
  SetHandle(&inner_, scratch + offset_);
  SetHandle(&scratchpad_, scratch + scratchpad_offset_);
  if (direction_ == Direction::kIn) {
    reorder_.execute(
        DnnlStream(),
        {{DNNL_ARG_FROM, caller_}, {DNNL_ARG_TO, inner_}, {DNNL_ARG_SCRATCHPAD, scratchpad_}});
  }
  return inner_;
}

void DnnlPort::End() {
  if (direction_ == Direction::kIn || !copies()) return;
  reorder_.execute(
      DnnlStream(),
      {{DNNL_ARG_FROM, inner_}, {DNNL_ARG_TO, caller_}, {DNNL_ARG_SCRATCHPAD, scratchpad_}});
}

void SetHandle(dnnl::memory* memory, const void* data) {
  void* handle = const_cast<void*>(data);  // NOLINT: oneDNN has no read-only memory
  if (memory->get_data_handle() != handle) memory->set_data_handle(handle);
}

Status DnnlStatus(const dnnl::error& error) {
  const bool unimplemented = error.status == dnnl_unimplemented;
  return {unimplemented ? StatusCode::kUnimplemented : StatusCode::kInternal,
          fmt::format("oneDNN: {} (status {})", error.what(), static_cast<int>(error.status))};
}

}  // namespace ringtail
