#include "layers/net/net_memory.h"

#include <algorithm>

#include "core/check.h"
#include "core/round.h"
#include "layers/net/deferral.h"
#include "layers/net/memory_plan.h"

namespace ringtail {
namespace {

constexpr int kNone = -1;  // no storage

// Collects storages (one request each) while it walks a step in time order; several blobs may map
// to one storage.
class Planner {
 public:
  Planner(std::span<const NodeNeeds> nodes, const NetMemoryOptions& options)
      : nodes_(nodes),
        training_(options.training),
        apart_(options.apart),
        deferral_(nodes, options),
        size_(static_cast<int>(nodes.size())),
        data_(nodes.size(), kNone),
        diff_(nodes.size(), kNone),
        refs_(nodes.size()) {}

  NetMemory Run() {
    for (int i = 0; i < size_; ++i) PlaceForward(i);
    if (training_) {
      for (int i = size_ - 1; i >= 0; --i) PlaceBackward(i);
    }
    return Resolve();
  }

 private:
  // Per node: indices into requests_, resolved to offsets at the end.
  struct Refs {
    int state = kNone, forward_scratch = kNone, backward_scratch = kNone;
    int recomputed = kNone, dst_moments = kNone, diff_dst_sums = kNone;
    std::vector<int> recompute;
    std::vector<int> diff_src;
    std::vector<bool> accumulate;
    bool add_to_diff_src = false;
  };

  int BackwardTime(int i) const { return 2 * size_ - 1 - i; }

  int NewStorage(int64_t bytes, int first, int last) {
    requests_.push_back({bytes, first, last});
    return static_cast<int>(requests_.size()) - 1;
  }
  void Extend(int storage, int last) {
    requests_[storage].last = std::max(requests_[storage].last, last);
  }
  // Two arrays of values of the parts of dst of node i.
  int64_t BytesOfTwo(const BlobParts& parts, int i) const {
    return 2 * parts.elements(nodes_[i].plan.dst) * static_cast<int64_t>(sizeof(double));
  }

  // The last time at which dst of node i is read; of a dropped one: in forward.
  int LastUse(int i) const {
    const bool forward_only = deferral_.IsDropped(i) || deferral_.IsDeferredBackward(i);
    int last = i;
    for (const int consumer : deferral_.Consumers(i)) {
      last = std::max(last, consumer);
      if (deferral_.IsDeferredForward(consumer)) {
        last = std::max(last, deferral_.Consumers(consumer).back());
      }
      if (deferral_.ReadsSrcBackward(consumer) && !forward_only) {
        last = std::max(last, BackwardTime(consumer));
      }
    }
    const bool own_backward = deferral_.Learns(i) && nodes_[i].plan.backward_needs_dst;
    if (own_backward || deferral_.TakesMap(i)) last = std::max(last, BackwardTime(i));
    const bool is_logits = nodes_.back().inputs[0] == i;  // read by the net after forward
    return is_logits ? std::max(last, size_ - 1) : last;
  }

  // Storage for the gradient sums of dst, from the consumer's backward to its own.
  void PlaceSums(int i) {
    const BlobGradientSums sums{{.part_pixels = deferral_.GradientSumsPixels(i)}};
    if (sums.part_pixels == 0) return;
    refs_[i].diff_dst_sums = NewStorage(
        BytesOfTwo(sums, i), BackwardTime(deferral_.DeferredConsumer(i)), BackwardTime(i));
  }

  // Storage for the second life of a dropped blob: from the first backward that reads it to the
  // last.
  void PlaceRecomputed(int i) {
    if (!deferral_.IsDropped(i) || deferral_.IsDeferredBackward(i)) return;
    int first_consumer = kNone, last = 0;
    for (const int consumer : deferral_.Consumers(i)) {
      if (!deferral_.ReadsSrcBackward(consumer)) continue;
      first_consumer = std::max(first_consumer, consumer);  // backward starts at the last node
      last = std::max(last, BackwardTime(consumer));
    }
    if (first_consumer == kNone) return;
    const int now = BackwardTime(first_consumer);
    refs_[i].recomputed = NewStorage(nodes_[i].plan.dst.bytes(), now, last);
    refs_[first_consumer].recompute.push_back(i);
  }

  bool IsForwardInPlace(int i) const {
    const LayerPlan& plan = nodes_[i].plan;
    const int input = nodes_[i].inputs[0];
    return plan.forward_in_place && input >= 0 && deferral_.Uses(input) == 1 &&
           !deferral_.IsDeferredForward(input) &&
           plan.dst.bytes() == nodes_[input].plan.dst.bytes() && LastUse(input) == i;
  }

  void PlaceForward(int i) {
    const LayerPlan& plan = nodes_[i].plan;
    const int last = LastUse(i);
    const int input = nodes_[i].inputs[0];
    const bool deferred = deferral_.IsDeferredForward(i);
    if (deferred) {
      data_[i] = kNone;
    } else if (IsForwardInPlace(i)) {
      data_[i] = data_[input];
      Extend(data_[i], last);
    } else {
      data_[i] = NewStorage(plan.dst.bytes(), i, last);
    }
    int state_last = deferral_.Learns(i) ? BackwardTime(i) : deferred ? last : i;
    if (input >= 0 && deferral_.TakesMap(input)) state_last = BackwardTime(input);
    refs_[i].state = NewStorage(static_cast<int64_t>(plan.state_bytes), i, state_last);
    refs_[i].forward_scratch = NewStorage(static_cast<int64_t>(plan.scratch_bytes), i, i);
    if (training_ && plan.fusion.dst_moments_pixels > 0) {
      const BlobMoments moments{{.part_pixels = plan.fusion.dst_moments_pixels}};
      refs_[i].dst_moments = NewStorage(BytesOfTwo(moments, i), i, deferral_.Consumers(i).back());
    }
    PlaceSums(i);
    PlaceRecomputed(i);
  }

  void PlaceBackward(int i) {
    const NodeNeeds& node = nodes_[i];
    Refs& refs = refs_[i];
    refs.diff_src.assign(node.inputs.size(), kNone);
    refs.accumulate.assign(node.inputs.size(), false);
    if (!deferral_.Learns(i)) return;
    const int now = BackwardTime(i);
    refs.backward_scratch = NewStorage(static_cast<int64_t>(node.plan.scratch_bytes), now, now);
    if (diff_[i] != kNone) Extend(diff_[i], now);
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      if (deferral_.Learns(node.inputs[j])) PlaceGradient(i, j);
    }
    for (const int input : node.inputs) {
      if (deferral_.Learns(input) && diff_[input] != kNone) Extend(diff_[input], now);
    }
  }

  // diff_src[j] of node i.
  void PlaceGradient(int i, size_t j) {
    const NodeNeeds& node = nodes_[i];
    Refs& refs = refs_[i];
    const int input = node.inputs[j], now = BackwardTime(i);
    if (deferral_.TakesMap(input)) {
      diff_[input] = diff_[i];
      return;
    }
    if (j == 0 && diff_[input] != kNone && node.plan.fusion.backward_adds) {
      refs.diff_src[j] = diff_[input];
      refs.add_to_diff_src = true;
      return;
    }
    const int64_t bytes = nodes_[input].plan.dst.bytes();
    const bool in_place = j == 0 && node.plan.backward_in_place && diff_[i] != kNone &&
                          bytes == node.plan.dst.bytes();
    refs.accumulate[j] = diff_[input] != kNone;
    refs.diff_src[j] = in_place ? diff_[i] : NewStorage(bytes, now, now);
    if (!refs.accumulate[j]) diff_[input] = refs.diff_src[j];
  }

  // Lives from forward, times 0 .. size - 1, to backward.
  bool IsKept(const MemoryRequest& request) const {
    return request.first < size_ && request.last >= size_;
  }

  int64_t KeptBytes() const {
    int64_t bytes = 0;
    for (const MemoryRequest& request : requests_) {
      if (IsKept(request)) bytes += RoundUp(request.bytes, kMemoryAlignment);
    }
    return bytes;
  }

  MemoryPlan PlanApart() const {
    std::vector<MemoryRequest> kept = requests_, work = requests_;
    for (size_t i = 0; i < requests_.size(); ++i) (IsKept(requests_[i]) ? work : kept)[i].bytes = 0;
    MemoryPlan plan = PlanMemory(kept);
    const MemoryPlan behind = PlanMemory(work);
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (!IsKept(requests_[i])) plan.offsets[i] = plan.total_bytes + behind.offsets[i];
    }
    plan.total_bytes += behind.total_bytes;
    return plan;
  }

  NetMemory Resolve() const {
    const MemoryPlan plan = apart_ ? PlanApart() : PlanMemory(requests_);
    const auto offset = [&](int storage) {
      return storage == kNone || requests_[storage].bytes == 0 ? kNoBuffer : plan.offsets[storage];
    };
    NetMemory memory;
    memory.total_bytes = plan.total_bytes;
    memory.kept_bytes = KeptBytes();
    for (int i = 0; i < size_; ++i) {
      NodePlacement p{.dst = offset(data_[i]),
                      .diff_dst = offset(diff_[i]),
                      .state = offset(refs_[i].state),
                      .forward_scratch = offset(refs_[i].forward_scratch),
                      .backward_scratch = offset(refs_[i].backward_scratch),
                      .recomputed_dst = offset(refs_[i].recomputed),
                      .dst_moments = offset(refs_[i].dst_moments),
                      .diff_dst_sums = offset(refs_[i].diff_dst_sums),
                      .deferred_forward = deferral_.IsDeferredForward(i),
                      .deferred_backward = deferral_.IsDeferredBackward(i),
                      .diff_dst_is_map = deferral_.TakesMap(i),
                      .recompute = refs_[i].recompute,
                      .diff_src = {},
                      .accumulate = refs_[i].accumulate,
                      .add_to_diff_src = refs_[i].add_to_diff_src};
      for (const int storage : refs_[i].diff_src) p.diff_src.push_back(offset(storage));
      memory.nodes.push_back(std::move(p));
    }
    return memory;
  }

  std::span<const NodeNeeds> nodes_;
  bool training_, apart_;
  Deferral deferral_;
  int size_;
  std::vector<int> data_, diff_;  // storage of each node's dst and of its gradient
  std::vector<Refs> refs_;
  std::vector<MemoryRequest> requests_;
};

}  // namespace

NetMemory PlanNetMemory(std::span<const NodeNeeds> nodes, const NetMemoryOptions& options) {
  RT_CHECK(!nodes.empty(), "a net has at least its loss");
  return Planner(nodes, options).Run();
}

}  // namespace ringtail
