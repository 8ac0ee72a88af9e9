#include "layers/net/net_memory.h"

#include <algorithm>

#include "core/check.h"
#include "layers/net/memory_plan.h"

namespace ringtail {
namespace {

constexpr int kNone = -1;  // no storage

// Collects storages (one request each) while it walks a step in time order;
// several blobs may map to one storage.
class Planner {
 public:
  Planner(std::span<const NodeNeeds> nodes, bool training, bool recompute, bool defer)
      : nodes_(nodes),
        training_(training),
        recompute_(recompute),
        defer_(defer),
        size_(static_cast<int>(nodes.size())),
        data_(nodes.size(), kNone),
        diff_(nodes.size(), kNone),
        refs_(nodes.size()),
        readers_(nodes.size(), 0),
        last_reader_(nodes.size(), kNone) {
    for (int i = 0; i < size_; ++i) {
      for (const int input : nodes[i].inputs) {
        if (input < 0) continue;
        ++readers_[input];
        last_reader_[input] = i;
      }
    }
  }

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
  bool Learns(int i) const { return training_ && i >= 0 && nodes_[i].learns; }

  int NewStorage(int64_t bytes, int first, int last) {
    requests_.push_back({bytes, first, last});
    return static_cast<int>(requests_.size()) - 1;
  }
  // Of two arrays of values of the parts of dst of node i.
  int64_t BytesOfTwo(const BlobParts& parts, int i) const {
    return 2 * parts.elements(nodes_[i].plan.dst) * static_cast<int64_t>(sizeof(double));
  }
  void Extend(int storage, int last) {
    requests_[storage].last = std::max(requests_[storage].last, last);
  }

  // The nodes that read dst of node i.
  std::vector<int> Readers(int i) const {
    std::vector<int> readers;
    for (int c = i + 1; c < size_; ++c) {
      const std::vector<int>& inputs = nodes_[c].inputs;
      if (std::find(inputs.begin(), inputs.end(), i) != inputs.end()) readers.push_back(c);
    }
    return readers;
  }
  bool ReadsSrcBackward(int i) const { return Learns(i) && nodes_[i].plan.backward_needs_src; }

  // The last time at which somebody reads dst of node i; of a dropped one: in forward.
  int LastUse(int i) const {
    const bool forward_only = IsDropped(i) || IsDeferredBackward(i);
    int last = i;
    for (const int reader : Readers(i)) {
      last = std::max(last, reader);
      if (IsDeferredForward(reader)) last = std::max(last, last_reader_[reader]);
      if (ReadsSrcBackward(reader) && !forward_only) last = std::max(last, BackwardTime(reader));
    }
    if (Learns(i) && nodes_[i].plan.backward_needs_dst) last = std::max(last, BackwardTime(i));
    if (TakesMap(i)) last = std::max(last, BackwardTime(i));
    const bool is_logits = nodes_.back().inputs[0] == i;  // read by the net after forward
    return is_logits ? std::max(last, size_ - 1) : last;
  }

  // Whether dst of node i is dropped after forward. Its src is still there when it is recomputed:
  // its own backward, which comes later, needs it. A src that is dropped itself is not.
  bool IsDropped(int i) const {
    const LayerPlan& plan = nodes_[i].plan;
    const int input = nodes_[i].inputs[0];
    return recompute_ && Learns(i) && plan.recomputable && plan.backward_needs_src &&
           !plan.backward_needs_dst && !(input >= 0 && IsDropped(input));
  }

  // The node that may read src[0] of node i in place of dst, if its plan says that it can.
  int DeferredReader(int i) const {
    const LayerPlan& plan = nodes_[i].plan;
    const bool possible = defer_ && plan.dst_is_affine && !plan.backward_needs_dst &&
                          nodes_[i].inputs[0] >= 0 && readers_[i] == 1 &&
                          nodes_[last_reader_[i]].inputs[0] == i;
    return possible ? last_reader_[i] : kNone;
  }
  // In backward src[0] is still there, as for IsDropped.
  bool IsDeferredBackward(int i) const {
    const int reader = DeferredReader(i);
    return reader != kNone && ReadsSrcBackward(reader) && ReadsSrcBackward(i) &&
           nodes_[reader].plan.backward_takes_affine && !IsDropped(nodes_[i].inputs[0]);
  }
  // Not where dst would have to be kept for backward all the same.
  bool IsDeferredForward(int i) const {
    const int reader = DeferredReader(i);
    return reader != kNone && nodes_[reader].plan.forward_takes_affine &&
           (!ReadsSrcBackward(reader) || IsDeferredBackward(i) || IsDropped(i));
  }

  // Whether the only reader leaves its diff_src to this node, as a map.
  bool TakesMap(int i) const { return Learns(i) && nodes_[i].plan.backward_takes_map; }

  // Storage for the sums of the gradient of a map, from its reader's backward to its own.
  void PlaceSums(int i) {
    if (!IsDeferredBackward(i)) return;
    const int reader = DeferredReader(i);
    const BlobGradientSums sums{{.part_pixels = nodes_[reader].plan.diff_src_sums_pixels}};
    if (sums.part_pixels == 0) return;
    refs_[i].diff_dst_sums = NewStorage(BytesOfTwo(sums, i), BackwardTime(reader), BackwardTime(i));
  }

  // Storage for the second life of a dropped blob: from the first backward that reads it to the
  // last.
  void PlaceRecomputed(int i) {
    if (!IsDropped(i) || IsDeferredBackward(i)) return;
    int first_reader = kNone, last = 0;
    for (const int reader : Readers(i)) {
      if (!ReadsSrcBackward(reader)) continue;
      first_reader = std::max(first_reader, reader);  // backward runs from the last node on
      last = std::max(last, BackwardTime(reader));
    }
    if (first_reader == kNone) return;
    const int now = BackwardTime(first_reader);
    refs_[i].recomputed = NewStorage(nodes_[i].plan.dst.bytes(), now, last);
    refs_[first_reader].recompute.push_back(i);
  }

  void PlaceForward(int i) {
    const LayerPlan& plan = nodes_[i].plan;
    const int last = LastUse(i);
    const int input = nodes_[i].inputs[0];
    const bool deferred = IsDeferredForward(i);
    const bool in_place = plan.forward_in_place && input >= 0 && readers_[input] == 1 &&
                          !IsDeferredForward(input) &&
                          plan.dst.bytes() == nodes_[input].plan.dst.bytes() && LastUse(input) == i;
    if (deferred) {
      data_[i] = kNone;
    } else if (in_place) {
      data_[i] = data_[input];
      Extend(data_[i], last);
    } else {
      data_[i] = NewStorage(plan.dst.bytes(), i, last);
    }
    int state_last = Learns(i) ? BackwardTime(i) : deferred ? last : i;
    if (input >= 0 && TakesMap(input)) state_last = BackwardTime(input);
    refs_[i].state = NewStorage(static_cast<int64_t>(plan.state_bytes), i, state_last);
    refs_[i].forward_scratch = NewStorage(static_cast<int64_t>(plan.scratch_bytes), i, i);
    if (training_ && plan.dst_moments_pixels > 0) {
      const BlobMoments moments{{.part_pixels = plan.dst_moments_pixels}};
      refs_[i].dst_moments = NewStorage(BytesOfTwo(moments, i), i, last_reader_[i]);
    }
    PlaceSums(i);
    PlaceRecomputed(i);
  }

  void PlaceBackward(int i) {
    const NodeNeeds& node = nodes_[i];
    Refs& refs = refs_[i];
    refs.diff_src.assign(node.inputs.size(), kNone);
    refs.accumulate.assign(node.inputs.size(), false);
    if (!Learns(i)) return;
    const int now = BackwardTime(i);
    refs.backward_scratch = NewStorage(static_cast<int64_t>(node.plan.scratch_bytes), now, now);
    if (diff_[i] != kNone) Extend(diff_[i], now);
    for (size_t j = 0; j < node.inputs.size(); ++j) {
      const int p = node.inputs[j];
      if (!Learns(p)) continue;
      if (TakesMap(p)) {
        diff_[p] = diff_[i];
        continue;
      }
      const int64_t bytes = nodes_[p].plan.dst.bytes();
      const bool in_place = j == 0 && node.plan.backward_in_place && diff_[i] != kNone &&
                            bytes == node.plan.dst.bytes();
      if (j == 0 && diff_[p] != kNone && node.plan.backward_adds) {
        refs.diff_src[j] = diff_[p];
        refs.add_to_diff_src = true;
        continue;
      }
      refs.accumulate[j] = diff_[p] != kNone;
      refs.diff_src[j] = in_place ? diff_[i] : NewStorage(bytes, now, now);
      if (!refs.accumulate[j]) diff_[p] = refs.diff_src[j];
    }
    for (const int p : node.inputs) {
      if (Learns(p) && diff_[p] != kNone) Extend(diff_[p], now);
    }
  }

  NetMemory Resolve() const {
    const MemoryPlan plan = PlanMemory(requests_);
    const auto offset = [&](int storage) {
      return storage == kNone || requests_[storage].bytes == 0 ? kNoBuffer : plan.offsets[storage];
    };
    NetMemory memory;
    memory.total_bytes = plan.total_bytes;
    for (int i = 0; i < size_; ++i) {
      NodePlacement p{.dst = offset(data_[i]),
                      .diff_dst = offset(diff_[i]),
                      .state = offset(refs_[i].state),
                      .forward_scratch = offset(refs_[i].forward_scratch),
                      .backward_scratch = offset(refs_[i].backward_scratch),
                      .recomputed_dst = offset(refs_[i].recomputed),
                      .dst_moments = offset(refs_[i].dst_moments),
                      .diff_dst_sums = offset(refs_[i].diff_dst_sums),
                      .deferred_forward = IsDeferredForward(i),
                      .deferred_backward = IsDeferredBackward(i),
                      .diff_dst_is_map = TakesMap(i),
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
  bool training_, recompute_, defer_;
  int size_;
  std::vector<int> data_, diff_;  // storage of each node's dst and of its gradient
  std::vector<Refs> refs_;
  std::vector<int> readers_, last_reader_;
  std::vector<MemoryRequest> requests_;
};

}  // namespace

NetMemory PlanNetMemory(std::span<const NodeNeeds> nodes, bool training, bool recompute,
                        bool defer) {
  RT_CHECK(!nodes.empty(), "a net has at least its loss");
  return Planner(nodes, training, recompute, defer).Run();
}

}  // namespace ringtail
