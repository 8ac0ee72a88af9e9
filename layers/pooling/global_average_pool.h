// Global average pooling: src (N, C, H, W) -> dst (N, C, 1, 1), the mean of each plane
// (Lin et al. 2014, section 3.2). See layers/pooling/average_windows.h.
#ifndef RINGTAIL_LAYERS_POOLING_GLOBAL_AVERAGE_POOL_H_
#define RINGTAIL_LAYERS_POOLING_GLOBAL_AVERAGE_POOL_H_

#include "layers/net.pb.h"
#include "layers/pooling/average_windows.h"

namespace ringtail {

class GlobalAveragePoolLayer : public AverageWindowsLayer {
 public:
  explicit GlobalAveragePoolLayer(const GlobalAveragePoolConfig& config);

 protected:
  Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                     std::vector<PoolSpan>* columns) override;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_GLOBAL_AVERAGE_POOL_H_
