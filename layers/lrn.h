// LRN: local response normalization across channels.
//
//   src (N, C, H, W), any layout -> dst, same shape and layout
//   dst[c] = src[c] / s[c]^beta
//   s[c] = k + alpha / size * sum of src[j]^2 over the `size` channels around c
//
// State: none; Backward computes s again. Scratch: three tiles of 16 positions per thread.
// In place: in Backward, and in Forward if nothing is to be learned.
// Cost: two passes over memory and 2 size operations per element; the usual beta = 0.75 in vectors,
// others by one powf per element.
// Errors: InvalidArgument unless size is odd and positive, alpha >= 0, beta >= 0, k > 0.
// Source: Krizhevsky et al., NIPS 2012, section 3.3, with alpha / size for alpha as Caffe has it.
#ifndef RINGTAIL_LAYERS_LRN_H_
#define RINGTAIL_LAYERS_LRN_H_

#include "layers/layer.h"
#include "layers/net.pb.h"

namespace ringtail {

struct LrnShape;

class LrnLayer : public Layer {
 public:
  explicit LrnLayer(const LrnConfig& config);
  StatusOr<ShapeInfo> InferShape(std::span<const BlobDesc> src) override;
  bool RunsOn(std::span<const BlobType> src, BlobType dst) const override {
    return AllAre(src, dst);
  }
  StatusOr<LayerPlan> Setup(const SetupArgs& args) override;
  void Forward(const ForwardArgs& args) override;
  void Backward(const BackwardArgs& args) override;

 private:
  template <typename Element>
  void ForwardOn(const ForwardArgs& args);
  template <typename Element>
  void BackwardOn(const BackwardArgs& args);
  // Calls run(tiles, offset, positions) for every tile of the blob, in parallel; `tiles` is scratch
  // for the caller's three tiles, whose rows outside the channels are zero.
  template <typename Run>
  void ForEachTile(std::byte* scratch, const Run& run) const;
  LrnShape Shape() const;
  int64_t tile_elements() const;  // with the zero rows on both sides

  const LrnConfig config_;
  BlobDesc desc_;
  int64_t parts_ = 1;  // of the work, each with tiles of its own
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_LRN_H_
