// AverageWindowsLayer: what the average poolings share. A subclass says which windows; the average
// of a window is the sum of its elements inside the image times 1 / (row count * column count).
//   src (N, C, H, W) -> dst (N, C, OH, OW), layout of src
//   diff_src = sum over the windows with the element of diff_dst / (row count * column count)
// A dst of single pixels in whole channel blocks is declared plain, which is the same memory, so
// that a linear layer after it need not reorder. State, scratch: none. Cost: memory-bound.
#ifndef RINGTAIL_LAYERS_POOLING_AVERAGE_WINDOWS_H_
#define RINGTAIL_LAYERS_POOLING_AVERAGE_WINDOWS_H_

#include <string>
#include <vector>

#include "layers/kernels/average_pool.h"
#include "layers/layer.h"

namespace ringtail {

class AverageWindowsLayer : public Layer {
 public:
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override {
    return AllAre(src, dst);
  }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;
  std::string Implementation() const override;

 protected:
  // Checks the config against `src` and sets one span for each row and each column of dst.
  virtual Status FindWindows(const BlobDesc& src, std::vector<PoolSpan>* rows,
                             std::vector<PoolSpan>* columns) = 0;

 private:
  AveragePoolGeometry Geometry() const;

  std::vector<PoolSpan> rows_, columns_;
  BlobDesc src_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_POOLING_AVERAGE_WINDOWS_H_
