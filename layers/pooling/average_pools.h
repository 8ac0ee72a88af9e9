// The three average poolings: which windows each averages over. What they share, shapes and
// formulas of both passes, is in layers/pooling/average_windows.h.
#ifndef RINGTAIL_LAYERS_POOLING_AVERAGE_POOLS_H_
#define RINGTAIL_LAYERS_POOLING_AVERAGE_POOLS_H_

#include <vector>

#include "layers/net.pb.h"
#include "layers/pooling/average_windows.h"

namespace ringtail {

// Over the windows of layers/pooling/pool_window.h: src (N, C, H, W) -> dst (N, C, OH, OW).
// The divisor counts the window's elements inside the image; with count_padding (the default) those
// inside the image and its padding, so that only what CEIL adds beyond the padding is left out (as
// in PyTorch). Errors: window out of range (InferShape).
class AveragePoolLayer : public AverageWindowsLayer {
 public:
  explicit AveragePoolLayer(const PoolConfig& config) : config_(config) {}

 protected:
  Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                     std::vector<PoolSpan>* columns) override;

 private:
  const PoolConfig config_;
};

// Over the whole image: src (N, C, H, W) -> dst (N, C, 1, 1) (Lin et al. 2014, section 3.2).
class GlobalAveragePoolLayer : public AverageWindowsLayer {
 public:
  explicit GlobalAveragePoolLayer(const GlobalAveragePoolConfig&) {}

 protected:
  Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                     std::vector<PoolSpan>* columns) override;
};

// To a fixed size: src (N, C, H, W) -> dst (N, C, output, output); window i covers rows
// floor(i H / output) .. ceil((i + 1) H / output) - 1 and the same for columns, so that any image
// fits (PyTorch's AdaptiveAvgPool2d). Errors: output out of range (InferShape).
class AdaptiveAveragePoolLayer : public AverageWindowsLayer {
 public:
  explicit AdaptiveAveragePoolLayer(const AdaptiveAveragePoolConfig& config) : config_(config) {}

 protected:
  Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                     std::vector<PoolSpan>* columns) override;

 private:
  const AdaptiveAveragePoolConfig config_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_AVERAGE_POOLS_H_
