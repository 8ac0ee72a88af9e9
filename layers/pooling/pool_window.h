// The windows of max and average pooling: what PoolConfig says about one input.
//   FLOOR: OH = floor((H + PT + PB - KH) / SH) + 1
//   CEIL:  OH = ceil ((H + PT + PB - KH) / SH) + 1, without the last window if it would start below
//          the image and its top padding; the same for OW.
// So every window has at least one element inside the image (padding is at most half the kernel).
// Source: PyTorch's pooling_output_shape, Caffe's PoolingLayer.
#ifndef RINGTAIL_LAYERS_POOLING_POOL_WINDOW_H_
#define RINGTAIL_LAYERS_POOLING_POOL_WINDOW_H_

#include "core/config/field_check.h"
#include "core/status.h"
#include "layers/blob.h"
#include "layers/net.pb.h"
#include "layers/window.h"

namespace ringtail {

struct PoolWindow {
  Window window;
  BlobDesc dst;  // layout of src
};

// InvalidArgument, at the field, if the config is out of range or no window fits.
StatusOr<PoolWindow> ReadPoolWindow(const PoolConfig& config, const BlobDesc& src,
                                    const FieldCheck& fields);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_POOL_WINDOW_H_
