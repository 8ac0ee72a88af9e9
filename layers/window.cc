#include "layers/window.h"

#include <fmt/core.h>

namespace ringtail {
namespace {

// More than any image: keeps all products far from overflow.
constexpr int32_t kMaxExtent = 1 << 16;

Status CheckValues(const char* field, const IntList& values, int32_t lowest,
                   const FieldCheck& fields) {
  for (int i = 0; i < values.size(); ++i) {
    if (values[i] >= lowest && values[i] <= kMaxExtent) continue;
    return fields.Error(
        fmt::format("{}[{}]", field, i),
        fmt::format("{} is {}; it must be from {} to {}", field, values[i], lowest, kMaxExtent));
  }
  return OkStatus();
}

// One value for both directions, or height and width.
Status ReadPair(const char* field, const IntList& values, int32_t lowest, const FieldCheck& fields,
                int64_t* h, int64_t* w) {
  if (values.empty()) return OkStatus();
  if (values.size() > 2) {
    return fields.Error(field, fmt::format("{} has {} values; give one, or height and width", field,
                                           values.size()));
  }
  RT_RETURN_IF_ERROR(CheckValues(field, values, lowest, fields));
  *h = values.Get(0);
  *w = values.Get(values.size() - 1);
  return OkStatus();
}

}  // namespace

StatusOr<Window> ReadWindow(const IntList& kernel, const IntList& stride, const IntList& padding,
                            const IntList& dilation, DefaultStride default_stride,
                            const FieldCheck& fields) {
  if (kernel.empty()) {
    return fields.Error("kernel", "kernel is missing; give one value, or height and width");
  }
  Window w;
  RT_RETURN_IF_ERROR(ReadPair("kernel", kernel, 1, fields, &w.KH, &w.KW));
  if (default_stride == DefaultStride::kKernel) {
    w.SH = w.KH;
    w.SW = w.KW;
  }
  RT_RETURN_IF_ERROR(ReadPair("stride", stride, 1, fields, &w.SH, &w.SW));
  RT_RETURN_IF_ERROR(ReadPair("dilation", dilation, 1, fields, &w.DH, &w.DW));
  RT_RETURN_IF_ERROR(CheckValues("padding", padding, 0, fields));
  switch (padding.size()) {
    case 0:
      break;
    case 1:
      w.PT = w.PL = w.PB = w.PR = padding[0];
      break;
    case 2:
      w.PT = w.PB = padding[0];
      w.PL = w.PR = padding[1];
      break;
    case 4:
      w.PT = padding[0];
      w.PL = padding[1];
      w.PB = padding[2];
      w.PR = padding[3];
      break;
    default:
      return fields.Error("padding",
                          fmt::format("padding has {} values; give one, or height and width, or "
                                      "top, left, bottom, right",
                                      padding.size()));
  }
  return w;
}

int64_t WindowsFloor(int64_t size, int64_t padding, int64_t extent, int64_t stride) {
  const int64_t room = size + padding - extent;
  return room < 0 ? 0 : room / stride + 1;
}

}  // namespace ringtail
