#include "layers/convolution/winograd/winograd_strided_problem.h"

#include "layers/convolution/work_division.h"
#include "layers/kernels/winograd/winograd_multiply.h"

namespace ringtail {
namespace {

constexpr int64_t kPoints = 5;     // the last is infinity
constexpr int64_t kTileOfSrc = 8;  // for kTileOfDst outputs
constexpr int64_t kTileOfDst = 4;

WinogradGrid Grid(const BlobDesc& at, int64_t pad_top, int64_t pad_left, int64_t tiles_y,
                  int64_t tiles_x) {
  return {.H = at.H,
          .W = at.W,
          .pad_top = pad_top,
          .pad_left = pad_left,
          .tiles_y = tiles_y,
          .tiles_x = tiles_x,
          .sample_stride = at.channel_blocks() * at.plane() * at.block,
          .bf16 = at.type == BlobType::kBf16};
}

}  // namespace

bool WinogradStridedProblem::IsSupported() const {
  const int64_t lanes = RT_KERNEL(WinogradLanes)();
  const Window& w = window;
  return w.KH == 3 && w.KW == 3 && w.SH == 2 && w.SW == 2 && w.DH == 1 && w.DW == 1 && w.PT <= 1 &&
         w.PL <= 1 && w.PB <= 1 && w.PR <= 1 && groups == 1 && src.block == lanes &&
         dst.block == lanes && src.C % lanes == 0 && dst.C % lanes == 0;
}

WinogradStridedProblem::Phases WinogradStridedProblem::PhasesOf(int64_t slice) {
  const bool row_infinity = slice / kPoints == kPoints - 1;
  const bool column_infinity = slice % kPoints == kPoints - 1;
  if (row_infinity) return column_infinity ? Phases{1, 1} : Phases{0, 2};
  return column_infinity ? Phases{1, 2} : Phases{0, 4};
}

WinogradGrid WinogradStridedProblem::SrcGrid() const {
  return Grid(src, window.PT, window.PL, CeilDivide(dst.H, kTileOfDst),
              CeilDivide(dst.W, kTileOfDst));
}

WinogradGrid WinogradStridedProblem::DstGrid() const {
  return Grid(dst, 0, 0, CeilDivide(dst.H, kTileOfDst), CeilDivide(dst.W, kTileOfDst));
}

// Tiles consist of pairs of rows, the first of which is read by the middle of a filter: the first
// pair begins at row PT - 1, and the filters that read it begin with output PT - 1.
WinogradGrid WinogradStridedProblem::DiffSrcGrid() const {
  const int64_t top = 1 - window.PT, left = 1 - window.PL;
  return Grid(src, top, left, CeilDivide(src.H + top, kTileOfSrc),
              CeilDivide(src.W + left, kTileOfSrc));
}

WinogradGrid WinogradStridedProblem::DiffDstGrid() const {
  const WinogradGrid grid = DiffSrcGrid();
  return Grid(dst, grid.pad_top, grid.pad_left, grid.tiles_y, grid.tiles_x);
}

}  // namespace ringtail
