#include "layers/pooling/pool_window.h"

#include <fmt/core.h>

#include "layers/shape_check.h"

namespace ringtail {
namespace {

Status CheckPadding(const char* side, int64_t padding, int64_t kernel, const FieldCheck& fields) {
  if (2 * padding <= kernel) return OkStatus();
  return fields.Error(
      "padding",
      fmt::format("padding of {} at the {} is more than half the kernel of {}; windows would lie "
                  "in the padding",
                  padding, side, kernel));
}

// Windows along one direction; 0 if none fits.
int64_t CountWindows(int64_t size, int64_t before, int64_t after, int64_t kernel, int64_t stride,
                     PoolConfig::Rounding rounding) {
  if (rounding == PoolConfig::FLOOR) return WindowsFloor(size, before + after, kernel, stride);
  const int64_t room = size + before + after - kernel + stride - 1;
  if (room < 0) return 0;
  const int64_t windows = room / stride + 1;
  return (windows - 1) * stride >= size + before ? windows - 1 : windows;
}

}  // namespace

StatusOr<PoolWindow> ReadPoolWindow(const PoolConfig& config, const BlobDesc& src,
                                    const FieldCheck& fields) {
  RT_RETURN_IF_ERROR(CheckBlobSize(src));
  RT_ASSIGN_OR_RETURN(const Window w, ReadWindow(config.kernel(), config.stride(), config.padding(),
                                                 IntList(), DefaultStride::kKernel, fields));
  RT_RETURN_IF_ERROR(CheckPadding("top", w.PT, w.KH, fields));
  RT_RETURN_IF_ERROR(CheckPadding("bottom", w.PB, w.KH, fields));
  RT_RETURN_IF_ERROR(CheckPadding("left", w.PL, w.KW, fields));
  RT_RETURN_IF_ERROR(CheckPadding("right", w.PR, w.KW, fields));
  BlobDesc dst = src;
  dst.H = CountWindows(src.H, w.PT, w.PB, w.KH, w.SH, config.rounding());
  dst.W = CountWindows(src.W, w.PL, w.PR, w.KW, w.SW, config.rounding());
  if (dst.H < 1 || dst.W < 1) {
    return fields.Error(
        "kernel", fmt::format("a window of {}x{} does not fit into the input, {}, with its padding",
                              w.KH, w.KW, src.ShapeString()));
  }
  return PoolWindow{w, dst};
}

}  // namespace ringtail
