// LayerRunner: drives one layer as the net does, without a net, and looks closely while it does.
//
//   ReluLayer layer;
//   LayerRunner runner(&layer, {BlobDesc{2, 17, 5, 5, 16}}, {.training = true});
//   ASSERT_TRUE(runner.status().ok());
//   std::vector<float> dst = runner.Forward({src});      // plain NCHW in, plain NCHW out
//   std::vector<std::vector<float>> diff_src = runner.Backward(diff_dst);
//   EXPECT_EQ(runner.problems(), "");
//
// What it makes visible: every output and all memory is filled with NaN before each call, so that a
// float that is read too early or never written shows; what the plan does not ask for is a null
// pointer; guard words around every buffer and zeros in padding channels are checked after each
// call.
#ifndef RINGTAIL_TESTS_LAYERS_LAYER_RUNNER_H_
#define RINGTAIL_TESTS_LAYERS_LAYER_RUNNER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameter.h"
#include "core/status.h"
#include "layers/layer.h"

namespace ringtail {

// Memory with guard words before and after it.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t bytes = 0);
  std::byte* data() const;
  float* floats() const { return reinterpret_cast<float*>(data()); }
  size_t bytes() const { return bytes_; }
  void FillWithNan();
  bool GuardsIntact() const;

 private:
  AlignedBuffer memory_;
  size_t bytes_ = 0;
};

struct LayerRunnerOptions {
  bool training = true;                   // of Setup, and of the first steps; see step()
  bool in_place = true;                   // share memory wherever the plan allows it
  std::vector<char> needs_diff_src = {};  // per src; empty: all
  uint64_t seed = 1;                      // of the parameters' start and of the step
  BlobType dst_type = BlobType::kF32;     // the types of src are their descriptors'
};

class LayerRunner {
 public:
  // InferShape and Setup; the parameters get their initial values. `layer` must outlive the runner.
  LayerRunner(Layer* layer, std::vector<BlobDesc> src, LayerRunnerOptions options = {});

  const Status& status() const { return status_; }  // look here first
  const ShapeInfo& info() const { return info_; }
  const LayerPlan& plan() const { return plan_; }
  StepContext& step() { return step_; }  // set labels, step, training here
  size_t num_parameters() const { return parameters_.size(); }
  const Parameter& parameter(size_t i) const {
    return *parameters_[i];
  }  // in the order of the request

  // One call each; blobs are plain NCHW without padding, in f32. Backward belongs to the last Forward, and
  // may be called once for each. diff_src of an input that needs none is empty.
  std::vector<float> Forward(const std::vector<std::vector<float>>& src);
  std::vector<std::vector<float>> Backward(const std::vector<float>& diff_dst);

  // What the layer did wrong so far, one line each; empty if nothing.
  const std::string& problems() const { return problems_; }

 private:
  Status Setup(Layer* layer);
  void CheckMemory(const char* when);
  void CheckPadding(const BlobDesc& desc, const float* data, const std::string& what);
  bool ForwardInPlace() const;
  bool BackwardInPlace() const;

  Layer* layer_;
  std::vector<BlobDesc> src_descs_;
  LayerRunnerOptions options_;
  Status status_;
  ShapeInfo info_;
  LayerPlan plan_;
  StepContext step_;
  std::unique_ptr<ParameterArena> arena_;
  std::vector<const Parameter*> parameters_;
  std::vector<GuardedBuffer> src_, diff_src_;
  GuardedBuffer dst_, diff_dst_, state_, scratch_;
  std::string problems_;
};

// Between plain NCHW in f32 and a layout and type, slowly and obviously (not with the code under
// test, except for the rounding of one number).
void CopyToLayout(std::span<const float> plain, const BlobDesc& desc, float* blob);
std::vector<float> CopyToPlain(const BlobDesc& desc, const float* blob);
int64_t PlainElements(const BlobDesc& desc);

// Values in [low, high), a function of the seed; and plain NCHW that has the right size.
std::vector<float> RandomPlain(const BlobDesc& desc, uint64_t seed, float low = -1, float high = 1);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_LAYERS_LAYER_RUNNER_H_
