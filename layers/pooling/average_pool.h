// Average pooling over windows (layers/pooling/pool_window.h, layers/pooling/average_windows.h).
//   src (N, C, H, W) -> dst (N, C, OH, OW); dst = sum of the window / divisor
// divisor: the window's elements inside the image; with count_padding (the default) those inside
// the image and its padding, so that only what CEIL adds beyond the padding is left out (as in
// PyTorch).
#ifndef RINGTAIL_LAYERS_POOLING_AVERAGE_POOL_H_
#define RINGTAIL_LAYERS_POOLING_AVERAGE_POOL_H_

#include "layers/net.pb.h"
#include "layers/pooling/average_windows.h"

namespace ringtail {

class AveragePoolLayer : public AverageWindowsLayer {
 public:
  explicit AveragePoolLayer(const PoolConfig& config);

 protected:
  Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                     std::vector<PoolSpan>* columns) override;

 private:
  const PoolConfig config_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_AVERAGE_POOL_H_
