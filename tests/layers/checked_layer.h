// CheckedLayer: one row of the table of layer cases in one layout, ready to run, with everything
// that a test compares it with: inputs, projection vector, naive reference.
//
// The scalar that gradients belong to is  loss = sum over elements of projection * dst.  A layer
// that is a loss itself takes no diff_dst: its projection is all ones.
#ifndef RINGTAIL_TESTS_LAYERS_CHECKED_LAYER_H_
#define RINGTAIL_TESTS_LAYERS_CHECKED_LAYER_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/layers/layer_cases.h"
#include "tests/layers/layer_runner.h"
#include "tests/layers/naive.h"

namespace ringtail {

class CheckedLayer {
 public:
  // Creates the layer by the factory, as a net does. Look at status() first.
  CheckedLayer(const LayerCase& layer_case, Layout layout, const LayerRunnerOptions& options);

  const Status& status() const { return status_; }
  LayerRunner& runner() { return *runner_; }
  // May be changed between passes. Distinct, multiples of 2^-18, off the kinks at 0 and 6.
  std::vector<std::vector<float>>& src() { return src_; }
  const std::vector<float>& projection() const { return projection_; }

  std::vector<float> Forward() { return runner_->Forward(src_); }
  std::vector<std::vector<float>> Backward() { return runner_->Backward(projection_); }
  Doubles Naive(const std::vector<Doubles>& src, const std::vector<Doubles>& parameters) const;
  std::vector<Doubles> src_doubles() const;
  std::vector<Doubles> parameter_doubles() const;

  std::string implementation() const { return layer_->Implementation(); }

  // True if the layer's formula has kinks at dst = 0 or dst = 6: ReLU, or fused with it.
  bool HasKinks() const { return has_kinks_; }

 private:
  Status Create(const LayerCase& layer_case, const std::vector<BlobDesc>& src,
                const LayerRunnerOptions& options);

  NaiveProblem problem_;
  std::unique_ptr<Layer> layer_;
  std::unique_ptr<LayerRunner> runner_;
  std::vector<int32_t> labels_;
  std::vector<std::vector<float>> src_;
  std::vector<float> projection_;
  bool has_kinks_ = false;
  Status status_;
};

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_CHECKED_LAYER_H_
