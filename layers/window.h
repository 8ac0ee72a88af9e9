// Window: the geometry of a sliding window (convolution, pooling) in two dimensions,
// read from a config.
#ifndef RINGTAIL_LAYERS_WINDOW_H_
#define RINGTAIL_LAYERS_WINDOW_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>

#include "core/config/field_check.h"
#include "core/status.h"

namespace ringtail {

using IntList = google::protobuf::RepeatedField<int32_t>;

struct Window {
  int64_t KH = 1, KW = 1;                  // kernel
  int64_t SH = 1, SW = 1;                  // stride
  int64_t PT = 0, PL = 0, PB = 0, PR = 0;  // padding: top, left, bottom, right
  int64_t DH = 1, DW = 1;                  // dilation: 1 is dense

  // Rows and columns that the dilated kernel spans.
  int64_t extent_h() const { return DH * (KH - 1) + 1; }
  int64_t extent_w() const { return DW * (KW - 1) + 1; }
};

// The four lists of net.proto: kernel (required), stride (empty: `default_stride` of the kernel's
// two values, or 1), padding (empty: 0), dilation (empty: 1). InvalidArgument at the field, with
// its range.
enum class DefaultStride { kOne, kKernel };
StatusOr<Window> ReadWindow(const IntList& kernel, const IntList& stride, const IntList& padding,
                            const IntList& dilation, DefaultStride default_stride,
                            const FieldCheck& fields);

// floor((size + padding - extent) / stride) + 1 windows fit; 0 if none does.
int64_t WindowsFloor(int64_t size, int64_t padding, int64_t extent, int64_t stride);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_WINDOW_H_
