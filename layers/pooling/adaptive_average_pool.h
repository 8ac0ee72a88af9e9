// Average pooling to a fixed size: src (N, C, H, W) -> dst (N, C, output, output); window i covers
// rows floor(i H / output) .. ceil((i + 1) H / output) - 1 and the same for columns, so that any
// image fits (PyTorch's AdaptiveAvgPool2d). See layers/pooling/average_windows.h.
#ifndef RINGTAIL_LAYERS_POOLING_ADAPTIVE_AVERAGE_POOL_H_
#define RINGTAIL_LAYERS_POOLING_ADAPTIVE_AVERAGE_POOL_H_

#include "layers/net.pb.h"
#include "layers/pooling/average_windows.h"

namespace ringtail {

class AdaptiveAveragePoolLayer : public AverageWindowsLayer {
 public:
  explicit AdaptiveAveragePoolLayer(const AdaptiveAveragePoolConfig& config);

 protected:
  Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                     std::vector<PoolSpan>* columns) override;

 private:
  const AdaptiveAveragePoolConfig config_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_ADAPTIVE_AVERAGE_POOL_H_
