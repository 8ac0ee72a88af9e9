#include "layers/convolution/winograd/winograd_problem.h"

#include "core/round.h"
#include "layers/kernels/bf16/bf16_products.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {

bool WinogradProblem::IsSupported() const {
  const int64_t lanes = RT_KERNEL(WinogradLanes)();
  const Window& w = window;
  return w.KH == 3 && w.KW == 3 && w.SH == 1 && w.SW == 1 && w.DH == 1 && w.DW == 1 && w.PT <= 2 &&
         w.PL <= 2 && w.PB <= 2 && w.PR <= 2 && groups == 1 && src.block == lanes &&
         dst.block == lanes && src.C % lanes == 0 && dst.C % lanes == 0;
}

bool WinogradProblem::SupportsBf16() const {
  return IsSupported() && tile == 2 && src.type == BlobType::kBf16 && dst.type == BlobType::kBf16 &&
         RT_KERNEL(HasBf16Products)();
}

WinogradGrid WinogradProblem::Grid(const BlobDesc& at, int64_t pad_top, int64_t pad_left,
                                   const BlobDesc& of) const {
  return {.H = at.H,
          .W = at.W,
          .pad_top = pad_top,
          .pad_left = pad_left,
          .tiles_y = CeilDivide(of.H, tile),
          .tiles_x = CeilDivide(of.W, tile),
          .sample_stride = at.channel_blocks() * at.plane() * at.block,
          .bf16 = at.type == BlobType::kBf16};
}

}  // namespace ringtail
