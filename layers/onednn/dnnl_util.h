// oneDNN plumbing that the layers share. Private to layers/: included by .cc files only.
//
// One engine, one stream (in order). User scratchpads everywhere: Debian's oneDNN 2.6.3 crashes in
// its own scratchpad mode when a primitive runs on another thread than the one that created it.
#ifndef RINGTAIL_LAYERS_ONEDNN_DNNL_UTIL_H_
#define RINGTAIL_LAYERS_ONEDNN_DNNL_UTIL_H_

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#include "core/status.h"
#include "layers/activation.h"
#include "layers/blob.h"
#include "layers/scratch_layout.h"

namespace ringtail {

using DnnlArgs = std::unordered_map<int, dnnl::memory>;

const dnnl::engine& DnnlEngine();
dnnl::stream& DnnlStream();
dnnl::primitive_attr UserScratchpad();
dnnl::primitive_attr UserScratchpadWith(Activation fused);  // plus the activation as a post-op

dnnl::memory::desc ToDnnl(const BlobDesc& desc);     // {N, C, H, W}
dnnl::memory::desc AnyLayout(const BlobDesc& desc);  // the same, layout left to oneDNN
int64_t BlockOf(const dnnl::memory::desc& desc);     // 1, 8, 16 as in BlobDesc; 0: another layout
// True for code generated for this machine;
// false for oneDNN's reference loops and im2col fallbacks.
bool IsFastImplementation(const std::string& impl_info);

// One tensor argument of a primitive. Where the caller's layout and the primitive's agree it is the
// caller's memory; where they differ it is a copy in scratch, reordered on the way in or out.
class DnnlPort {
 public:
  enum class Direction { kIn, kOut };
  DnnlPort() = default;
  DnnlPort(Direction direction, const dnnl::memory::desc& caller,
           const dnnl::memory::desc& primitive, ScratchLayout* scratch);

  // Points the port at the caller's memory and at the scratch of this call;
  // kIn: copies if layouts differ.
  const dnnl::memory& Begin(const void* caller_data, std::byte* scratch);
  void End();  // kOut: copies back if layouts differ
  bool copies() const { return static_cast<bool>(reorder_); }

 private:
  Direction direction_ = Direction::kIn;
  dnnl::memory caller_, inner_;  // inner_ is unset when layouts agree
  dnnl::reorder reorder_;
  size_t offset_ = 0, scratchpad_offset_ = 0;
  dnnl::memory scratchpad_;
};

// Points `memory` at `data`. Cheap when it already does (oneDNN would clear padding each time).
void SetHandle(dnnl::memory* memory, const void* data);

// dnnl::error as a Status: "oneDNN: <message> (unimplemented)".
Status DnnlStatus(const dnnl::error& error);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_ONEDNN_DNNL_UTIL_H_
