// Net: a DAG of layers built from a config, with one memory plan for a whole step.
//
//   RT_ASSIGN_OR_RETURN(auto model, Model::Create(config, image_size));         shapes, parameters
//   model->Initialize(seed);
//   RT_ASSIGN_OR_RETURN(auto net, Net::Create(model.get(), {.batch = 64, .image_size = 128}));
//   net->Forward(batch, step);  net->Backward(on_gradient);
//
// A Model holds what the config determines for every batch size: layers and parameters. A Net is a
// Model made ready for one batch and image size; several Nets may share one Model (training,
// evaluation, other sizes). Memory: every blob, gradient, state and scratch area gets its place in
// one block by lifetime: backward frees what it no longer needs, and so does an evaluation net
// after each layer (layers/net/memory_plan.h).
// Thread-safety: the trainer thread only.
#ifndef RINGTAIL_LAYERS_NET_NET_H_
#define RINGTAIL_LAYERS_NET_NET_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/config/text_config.h"
#include "core/parameter.h"
#include "core/status.h"
#include "layers/blob.h"
#include "layers/layer.h"
#include "layers/net/model.h"
#include "layers/pipeline/stage.h"

namespace ringtail {

// One batch: N images, normalized f32 NCHW, and labels; label -1 marks a row without a sample.
struct BatchView {
  const float* images = nullptr;    // N * C * H * W, 64-byte aligned; null in a later stage
  std::span<const int32_t> labels;  // N
  SoftTargets soft = {};            // of the same rows; other labels 0 .. num_classes - 1, or -1
};

struct LossResult {
  double loss_sum = 0;  // over samples, smoothing and weights included
  int64_t correct = 0;  // argmax of the logits is the label
  int64_t count = 0;    // samples: rows whose label is not -1

  LossResult& operator+=(const LossResult& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    count += other.count;
    return *this;
  }
};

// Memory that nets share whose passes take turns: what a forward or a backward needs while it runs.
// All have the same plan. Thread-safety: the trainer thread.
class WorkMemory {
 public:
  std::byte* Take(int64_t bytes);  // the same number each time

 private:
  AlignedBuffer block_;
};

struct NetOptions {
  int64_t batch = 32;
  int64_t image_size = 128;
  // Keep only the input of a batch norm, and compute its output again in backward
  // (layers/net/net_memory.h): much less memory for a few percent of the time. The results are the
  // same bits.
  bool recompute = true;
  // Let convolutions do work of the batch norms before and after them while they load and store
  // (layers/fusion.h): normalize, take moments, map gradients and take their sums. The same results
  // except for rounding, in less time and memory.
  bool defer = true;
  bool training = true;  // false: Forward only, in far less memory
  // Only with training = false: keep the output of this layer, and have a backward from the logits
  // to it (layers/net/feature_map.h). An empty name: the last feature map. Batch norm of vectors
  // behind it takes a batch of 2 or more.
  std::optional<std::string> feature_map;
  // Measure algorithms for shapes that were never seen. False for a net that runs a few times only.
  bool measure = true;
  // Without memory: only layers(), memory_bytes() and needs() may be called. Shapes that were never measured
  // count as oneDNN's. The Model need not be allocated either.
  bool plan_only = false;
  // Shared with other nets; null: its own. Then memory_bytes() is what the net has for itself alone.
  std::shared_ptr<WorkMemory> work;
  // Where the measurements of convolution algorithms are found and remembered; must outlive Create.
  // Null: nothing is known, and nothing is remembered.
  AlgorithmChoices* algorithms = nullptr;
};

// One line of `summary` and `time`.
struct LayerInfo {
  std::string name, kind, implementation;  // kind: the config's field, "+relu" where fused
  std::vector<AlgorithmTimings> timings;
  BlobDesc dst;
  bool through_f32 =
      false;  // computes on f32 copies of bf16 blobs (layers/element_types/through_f32_layer.h)
  int64_t parameters = 0;     // elements
  double forward_flops = 0;   // per batch
  double backward_flops = 0;  // per batch: twice forward, or once where diff_src is not needed
  int64_t traffic_bytes = 0;  // what forward must move: inputs, parameters and dst, once
  int64_t memory_bytes = 0;   // dst, gradient and state, as if no memory were shared
};

// Called during Backward for each parameter as soon as its gradient is complete, in arena order.
using GradReady = std::function<void(const Parameter&)>;
// Called around each layer when set: (layer index, is_backward, seconds).
using LayerTimer = std::function<void(int, bool, double)>;

struct NodeNeeds;  // layers/net/net_memory.h

// What a net with NetOptions.feature_map keeps of a layer, as plain f32 whatever the net's layouts and
// types are: (N, C, H, W), row-major.
struct FeatureMap {
  std::string layer;
  BlobDesc desc;
  std::vector<float> values;    // dst, of the last Forward
  std::vector<float> gradient;  // of the last BackwardFromLogits
};

class Net {
 public:
  static StatusOr<std::unique_ptr<Net>> Create(Model* model, const NetOptions& options);
  ~Net();

  // Of a net of a stage: what its StepContext::boundary must have room for.
  const StageBlobs& boundaries() const;

  // Runs all layers; the loss of a stage that does not end with it is empty. `step.labels` is taken from
  // the batch. Labels must be -1 .. num_classes - 1.
  LossResult Forward(const BatchView& batch, StepContext step);
  // After a Forward with training = true: fills arena().grads() with the gradient
  // of the summed loss.
  void Backward(const GradReady& on_ready = {});

  // Of a net with NetOptions.feature_map, after an evaluating Forward: fills feature_map().gradient
  // with the gradient of sum(diff_logits * logits); diff_logits is (N, classes), row-major. A row of
  // one 1 gives the gradient of that class's score before softmax. In the mode of that Forward:
  // running statistics are constants, dropout is the identity; labels have no part in it.
  // Overwrites the parameter gradients of the layers after the feature map, and no others.
  // Cost: backward of those layers.
  void BackwardFromLogits(std::span<const float> diff_logits);
  const FeatureMap& feature_map() const;  // of such a net

  std::span<const float> logits() const;  // (N, classes), row-major, of the last Forward
  // After a Forward whose loss is not finite (or a Backward whose gradients are not): reruns
  // Forward with a check after each layer, and names the first layer whose parameters, output or
  // gradient has a NaN or infinity.
  Status FindNonFinite(const BatchView& batch, StepContext step);

  const NetOptions& options() const;
  std::span<const LayerInfo> layers() const;
  int64_t memory_bytes() const;              // of the plan: activations, gradients, state, scratch
  std::span<const NodeNeeds> needs() const;  // what it was planned from, by node
  void set_timer(LayerTimer timer);

 private:
  Net();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_NET_H_
