// A step of random nets played through their memory plans: every read finds what was written there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/random.h"
#include "layers/net/net_memory.h"

namespace ringtail {
namespace {

constexpr NetMemoryOptions kAllSavings{.recompute = true, .defer = true};
constexpr int64_t kCell = 64;        // bytes: what offsets are multiples of
constexpr int64_t kSpareCells = 64;  // a damaged plan may reach beyond the end
constexpr BlobDesc kBlob{.N = 2, .C = 16, .H = 4, .W = 4};  // 2 KiB
constexpr int64_t kMomentsPixels = 10;                      // two parts, one larger

// Part of the net's memory with a content that has a name.
struct Content {
  int64_t offset, bytes;
  std::string name;
  bool Overlaps(const Content& o) const {
    return offset < o.offset + o.bytes && o.offset < offset + bytes;
  }
};

// One call of a layer.
struct LayerCall {
  std::string name;
  std::vector<Content> reads, writes;
  bool in_place = false;  // writes[0] may be over reads[0]
};

class NetStep {
 public:
  NetStep(const std::vector<NodeNeeds>& nodes, const NetMemory& memory, bool training)
      : nodes_(nodes),
        memory_(memory),
        training_(training),
        cells_(memory.total_bytes / kCell + kSpareCells) {}

  // The mistakes of the plan, one line each.
  std::string Play() {
    const int size = static_cast<int>(nodes_.size());
    for (int i = 0; i < size; ++i) Forward(i);
    Expect(Dst(nodes_.back().inputs[0]), "the net");  // the logits
    for (int i = size - 1; i >= 0 && training_; --i) {
      if (nodes_[i].learns) Backward(i);
    }
    return problems_;
  }

 private:
  static std::string Name(const char* what, int i) { return what + (" " + std::to_string(i)); }

  Content Dst(int i) const {
    return {memory_.nodes[i].dst, nodes_[i].plan.dst.bytes(), Name("dst", i)};
  }
  Content BackwardDst(int i) const {  // as backward reads it
    Content dst = Dst(i);
    if (memory_.nodes[i].recomputed_dst != kNoBuffer) dst.offset = memory_.nodes[i].recomputed_dst;
    return dst;
  }
  Content State(int i) const {
    return {memory_.nodes[i].state, static_cast<int64_t>(nodes_[i].plan.state_bytes),
            Name("state", i)};
  }
  Content Moments(int i) const {
    const BlobMoments moments{{.part_pixels = nodes_[i].plan.fusion.dst_moments_pixels}};
    const int64_t elements = moments.elements(nodes_[i].plan.dst);
    return {memory_.nodes[i].dst_moments, 2 * elements * static_cast<int64_t>(sizeof(double)),
            Name("moments", i)};
  }
  Content Sums(int i) const {  // of the gradient of dst
    const BlobParts parts{.part_pixels = nodes_[ConsumerOf(i)].plan.fusion.diff_src_sums_pixels};
    const int64_t elements = parts.elements(nodes_[i].plan.dst);
    return {memory_.nodes[i].diff_dst_sums, 2 * elements * static_cast<int64_t>(sizeof(double)),
            Name("sums", i)};
  }
  Content DiffDst(int i) const {
    return {memory_.nodes[i].diff_dst, nodes_[i].plan.dst.bytes(), Name("diff", i)};
  }
  Content Scratch(int i, int64_t offset) const {
    return {offset, static_cast<int64_t>(nodes_[i].plan.scratch_bytes), Name("scratch", i)};
  }
  int ConsumerOf(int i) const {
    for (int c = i + 1; c < static_cast<int>(nodes_.size()); ++c) {
      if (nodes_[c].inputs[0] == i) return c;
    }
    return -1;
  }

  void Expect(const Content& content, const std::string& reader) {
    if (content.bytes == 0) return;
    if (content.offset == kNoBuffer) {
      problems_ += reader + " reads " + content.name + ", which is nowhere\n";
      return;
    }
    for (int64_t i = content.offset / kCell; i * kCell < content.offset + content.bytes; ++i) {
      if (cells_[i] == content.name) continue;
      problems_ += reader + " reads " + content.name + ", but finds '" + cells_[i] + "'\n";
      return;
    }
  }
  void Write(const Content& content) {
    if (content.offset == kNoBuffer) return;
    for (int64_t i = content.offset / kCell; i * kCell < content.offset + content.bytes; ++i) {
      cells_[i] = content.name;
    }
  }

  void Run(LayerCall call) {
    std::erase_if(call.writes, [](const Content& c) { return c.offset == kNoBuffer; });
    for (const Content& read : call.reads) Expect(read, call.name);
    for (size_t w = 0; w < call.writes.size(); ++w) {
      const Content& write = call.writes[w];
      for (size_t r = 0; r < call.reads.size(); ++r) {
        const Content& read = call.reads[r];
        const bool same = write.offset == read.offset && write.bytes == read.bytes;
        const bool allowed =
            same && ((call.in_place && w == 0 && r == 0) || write.name == read.name);
        if (read.offset != kNoBuffer && write.Overlaps(read) && !allowed) {
          problems_ += call.name + " writes " + write.name + " over " + read.name + "\n";
        }
      }
      for (size_t other = 0; other < w; ++other) {
        if (write.Overlaps(call.writes[other])) {
          problems_ += call.name + " writes " + write.name + " and " + call.writes[other].name +
                       " to one place\n";
        }
      }
    }
    for (const Content& write : call.writes) Write(write);
  }

  void Forward(int i) {
    const NodePlacement& place = memory_.nodes[i];
    LayerCall call{.name = Name("forward", i), .in_place = nodes_[i].plan.forward_in_place};
    for (size_t j = 0; j < nodes_[i].inputs.size(); ++j) {
      const int input = nodes_[i].inputs[j];
      if (input < 0) continue;
      if (memory_.nodes[input].deferred_forward) {
        call.reads.push_back(Dst(nodes_[input].inputs[0]));
        call.reads.push_back(State(input));
      } else {
        call.reads.push_back(Dst(input));
      }
      if (memory_.nodes[input].dst_moments != kNoBuffer) call.reads.push_back(Moments(input));
    }
    call.writes = {Dst(i), State(i), Scratch(i, place.forward_scratch)};
    if (place.dst_moments != kNoBuffer) call.writes.push_back(Moments(i));
    Run(call);
  }

  void Backward(int i) {
    const NodePlacement& place = memory_.nodes[i];
    for (const int dropped : place.recompute) {
      Run({.name = Name("recompute", dropped),
           .reads = {Dst(nodes_[dropped].inputs[0]), State(dropped)},
           .writes = {BackwardDst(dropped)}});
    }
    LayerCall call{.name = Name("backward", i), .in_place = nodes_[i].plan.backward_in_place};
    ReadGradient(i, &call);
    ReadForBackward(i, &call);
    if (place.diff_dst_sums != kNoBuffer) call.reads.push_back(Sums(i));
    call.writes = GradientsOf(i);
    call.writes.push_back(Scratch(i, place.backward_scratch));
    const int input = nodes_[i].inputs[0];
    if (input >= 0 && memory_.nodes[input].diff_dst_sums != kNoBuffer) {
      call.writes.push_back(Sums(input));
    }
    if (call.writes[0].offset == kNoBuffer || place.diff_dst == kNoBuffer) call.in_place = false;
    Run(call);
    for (size_t j = 0; j < nodes_[i].inputs.size(); ++j) {
      if (!place.accumulate[j]) continue;
      const Content sum = DiffDst(nodes_[i].inputs[j]);
      Run({.name = Name("adding for", i), .reads = {sum, GradientsOf(i)[j]}, .writes = {sum}});
    }
    SpendGradient(i);
  }

  void ReadGradient(int i, LayerCall* call) const {
    if (memory_.nodes[i].diff_dst == kNoBuffer) return;  // the loss
    if (!memory_.nodes[i].diff_dst_is_map) return call->reads.push_back(DiffDst(i));
    const int consumer = ConsumerOf(i);
    Content diff = DiffDst(i);
    diff.name = Name("diff", consumer);
    call->reads.insert(call->reads.end(), {diff, BackwardDst(i), State(consumer)});
  }
  void ReadForBackward(int i, LayerCall* call) const {
    const LayerPlan& plan = nodes_[i].plan;
    if (plan.state_bytes > 0) call->reads.push_back(State(i));
    if (plan.backward_needs_dst) call->reads.push_back(Dst(i));
    for (const int input : nodes_[i].inputs) {
      if (input < 0 || !plan.backward_needs_src) continue;
      if (memory_.nodes[input].deferred_backward) {
        call->reads.push_back(BackwardDst(nodes_[input].inputs[0]));
        call->reads.push_back(State(input));
      } else {
        call->reads.push_back(BackwardDst(input));
      }
    }
  }
  // The gradients that a backward writes, one per input; without a place where none is needed.
  std::vector<Content> GradientsOf(int i) const {
    const NodePlacement& place = memory_.nodes[i];
    std::vector<Content> gradients;
    for (size_t j = 0; j < nodes_[i].inputs.size(); ++j) {
      const int input = nodes_[i].inputs[j];
      gradients.push_back({place.diff_src[j], input < 0 ? 0 : nodes_[input].plan.dst.bytes(),
                           place.accumulate[j] ? Name("part", i) : Name("diff", input)});
    }
    return gradients;
  }
  // A layer may overwrite its diff_dst, unless that has become a diff_src or is to be mapped.
  void SpendGradient(int i) {
    const NodePlacement& place = memory_.nodes[i];
    const int input = nodes_[i].inputs[0];
    if (place.diff_dst == kNoBuffer || place.diff_src[0] == place.diff_dst) return;
    if (input >= 0 && memory_.nodes[input].diff_dst_is_map) return;
    Write({place.diff_dst, nodes_[i].plan.dst.bytes(), "what was " + Name("diff", i)});
  }

  const std::vector<NodeNeeds>& nodes_;
  const NetMemory& memory_;
  const bool training_;
  std::vector<std::string> cells_;
  std::string problems_;
};

enum class Kind { kConvolution, kBatchNorm, kRelu, kAdd, kLoss };

NodeNeeds Node(Kind kind, std::vector<int> inputs) {
  NodeNeeds node{.inputs = std::move(inputs), .plan = {}, .learns = true};
  LayerPlan& plan = node.plan;
  plan.dst = kBlob;
  plan.scratch_bytes = kind == Kind::kConvolution || kind == Kind::kBatchNorm ? 640 : 0;
  plan.state_bytes = kind == Kind::kBatchNorm ? 384 : 0;
  plan.backward_needs_src = kind == Kind::kConvolution || kind == Kind::kBatchNorm;
  plan.backward_needs_dst = kind == Kind::kRelu || kind == Kind::kLoss;
  plan.forward_in_place = kind == Kind::kRelu;
  plan.backward_in_place = kind != Kind::kConvolution && kind != Kind::kLoss;
  plan.recomputable = plan.fusion.dst_is_affine = kind == Kind::kBatchNorm;
  return node;
}

// Whether node i has one consumer, a batch norm, whose work it can share.
bool IsNormalized(const std::vector<NodeNeeds>& nodes, const std::vector<Kind>& kinds, int i) {
  int uses = 0;
  bool batch_norm = false;
  for (size_t c = i + 1; c < nodes.size(); ++c) {
    uses += static_cast<int>(std::ranges::count(nodes[c].inputs, i));
    if (nodes[c].inputs[0] == i) batch_norm = kinds[c] == Kind::kBatchNorm;
  }
  return uses == 1 && batch_norm;
}

// Convolutions, batch norms, ReLUs and sums of earlier blobs in any order; every convolution can do
// some of what it may.
std::vector<NodeNeeds> RandomNet(uint64_t seed) {
  Rng rng(RngKey(seed).With(kTestStream));
  const int size = 4 + static_cast<int>(rng.Below(24));
  std::vector<NodeNeeds> nodes = {Node(Kind::kConvolution, {-1})};
  std::vector<Kind> kinds = {Kind::kConvolution};
  for (int i = 1; i < size; ++i) {
    // Batch norms mostly after convolutions.
    const bool after_convolution = kinds.back() == Kind::kConvolution && rng.Below(4) > 0;
    const Kind any[] = {Kind::kConvolution, Kind::kConvolution, Kind::kBatchNorm, Kind::kRelu,
                        Kind::kAdd};
    const Kind kind = i + 1 == size       ? Kind::kLoss
                      : after_convolution ? Kind::kBatchNorm
                                          : any[rng.Below(5)];
    std::vector<int> inputs = {i - 1};
    if (kind == Kind::kAdd) inputs.push_back(static_cast<int>(rng.Below(i)));
    nodes.push_back(Node(kind, inputs));
    kinds.push_back(kind);
  }
  for (int i = 0; i < size; ++i) {
    LayerPlan& plan = nodes[i].plan;
    if (kinds[i] != Kind::kConvolution) continue;
    plan.fusion.forward_takes_affine = rng.Below(3) > 0;
    plan.fusion.backward_takes_affine = rng.Below(3) > 0;
    plan.fusion.diff_src_sums_pixels = rng.Below(3) > 0 ? kMomentsPixels : 0;
    if (!IsNormalized(nodes, kinds, i)) continue;
    plan.fusion.dst_moments_pixels = rng.Below(3) > 0 ? kMomentsPixels : 0;
    plan.fusion.backward_takes_map = rng.Below(3) > 0;
  }
  return nodes;
}

TEST(NetMemoryStepTest, NoContentIsLostInAnyNet) {
  int moments = 0, maps = 0, deferred = 0, sums = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const std::vector<NodeNeeds> nodes = RandomNet(seed);
    for (const bool training : {false, true}) {
      for (const bool recompute : {false, true}) {
        for (const bool defer : {false, true}) {
          const NetMemory memory = PlanNetMemory(nodes, {training, recompute, defer});
          ASSERT_EQ(NetStep(nodes, memory, training).Play(), "")
              << "seed " << seed << (training ? ", training" : "")
              << (recompute ? ", recompute" : "") << (defer ? ", defer" : "");
          for (const NodePlacement& place : memory.nodes) {
            moments += place.dst_moments != kNoBuffer;
            maps += place.diff_dst_is_map;
            deferred += place.deferred_backward;
            sums += place.diff_dst_sums != kNoBuffer;
            ASSERT_TRUE(training || (place.dst_moments == kNoBuffer && !place.diff_dst_is_map));
            ASSERT_TRUE(place.deferred_backward || place.diff_dst_sums == kNoBuffer);
          }
        }
      }
    }
  }
  EXPECT_GT(moments, 1000);  // the test must not pass on nets that do nothing of it
  EXPECT_GT(maps, 1000);
  EXPECT_GT(deferred, 500);
  EXPECT_GT(sums, 300);
}

// 0, a convolution -> 1, a batch norm -> 2, a convolution -> 3, a batch norm -> 4, the loss
std::vector<NodeNeeds> Chain() {
  std::vector<NodeNeeds> nodes = {Node(Kind::kConvolution, {-1}), Node(Kind::kBatchNorm, {0}),
                                  Node(Kind::kConvolution, {1}), Node(Kind::kBatchNorm, {2}),
                                  Node(Kind::kLoss, {3})};
  for (const int i : {0, 2}) {
    FusionPlan& fusion = nodes[i].plan.fusion;
    fusion.backward_takes_map = fusion.backward_takes_affine = true;
    fusion.dst_moments_pixels = fusion.diff_src_sums_pixels = kMomentsPixels;
  }
  return nodes;
}

TEST(NetMemoryStepTest, ThePlayerSeesWhatIsWrong) {
  const std::vector<NodeNeeds> nodes = Chain();
  const NetMemory good = PlanNetMemory(nodes, kAllSavings);
  EXPECT_EQ(NetStep(nodes, good, true).Play(), "");
  const auto problems = [&](const auto& damage) {
    NetMemory bad = good;
    damage(&bad.nodes);
    return NetStep(nodes, bad, true).Play();
  };
  using Places = std::vector<NodePlacement>;
  EXPECT_NE(problems([](Places* n) { (*n)[2].dst_moments = (*n)[2].dst; }), "");
  EXPECT_NE(problems([](Places* n) { (*n)[2].dst = (*n)[0].dst; }), "");
  EXPECT_NE(problems([](Places* n) { (*n)[2].diff_dst_is_map = false; }), "");
  EXPECT_NE(problems([](Places* n) { (*n)[2].diff_dst = (*n)[2].dst; }), "");
  EXPECT_NE(problems([](Places* n) { (*n)[2].backward_scratch = (*n)[3].state; }), "");
  EXPECT_NE(problems([](Places* n) { (*n)[1].state = (*n)[0].dst; }), "");
  EXPECT_NE(problems([](Places* n) { (*n)[1].diff_dst_sums = (*n)[1].diff_dst; }), "");
}

TEST(NetMemoryStepTest, AMappedGradientIsThatOfTheBatchNorm) {
  std::vector<NodeNeeds> nodes = Chain();
  const NetMemory mapped = PlanNetMemory(nodes, {});
  for (const int i : {0, 2}) {
    EXPECT_TRUE(mapped.nodes[i].diff_dst_is_map);
    EXPECT_EQ(mapped.nodes[i].diff_dst, mapped.nodes[i + 1].diff_dst);
    EXPECT_EQ(mapped.nodes[i + 1].diff_src[0], kNoBuffer);  // not written
    EXPECT_FALSE(mapped.nodes[i + 1].diff_dst_is_map);
  }
  nodes[2].plan.fusion.backward_takes_map = false;
  const NetMemory written = PlanNetMemory(nodes, {});
  EXPECT_TRUE(written.nodes[0].diff_dst_is_map);
  EXPECT_FALSE(written.nodes[2].diff_dst_is_map);
  EXPECT_EQ(written.nodes[3].diff_src[0], written.nodes[2].diff_dst);
  EXPECT_NE(written.nodes[3].diff_src[0], kNoBuffer);
}

TEST(NetMemoryStepTest, SumsAreTakenByAConsumerThatMapsItsSrc) {
  std::vector<NodeNeeds> nodes = Chain();
  const NetMemory memory = PlanNetMemory(nodes, kAllSavings);
  EXPECT_NE(memory.nodes[1].diff_dst_sums, kNoBuffer);
  EXPECT_EQ(memory.nodes[3].diff_dst_sums, kNoBuffer);  // the loss
  EXPECT_EQ(PlanNetMemory(nodes, {.recompute = true}).nodes[1].diff_dst_sums, kNoBuffer);
  nodes[2].plan.fusion.backward_takes_affine = false;
  EXPECT_EQ(PlanNetMemory(nodes, kAllSavings).nodes[1].diff_dst_sums, kNoBuffer);
}

TEST(NetMemoryStepTest, WhatDoesNotLearnMapsNoGradient) {
  std::vector<NodeNeeds> nodes = Chain();
  nodes[0].learns = false;
  const NetMemory memory = PlanNetMemory(nodes, {});
  EXPECT_FALSE(memory.nodes[0].diff_dst_is_map);
  EXPECT_EQ(memory.nodes[1].diff_src[0], kNoBuffer);
  EXPECT_TRUE(memory.nodes[2].diff_dst_is_map);
  EXPECT_EQ(NetStep(nodes, memory, true).Play(), "");
}

TEST(NetMemoryStepTest, EvaluationTakesNoMoments) {
  const NetMemory memory = PlanNetMemory(Chain(), {false, true, true});
  for (const NodePlacement& place : memory.nodes) {
    EXPECT_EQ(place.dst_moments, kNoBuffer);
    EXPECT_FALSE(place.diff_dst_is_map);
  }
}

}  // namespace
}  // namespace ringtail
