#include "layers/net/net_memory.h"

#include <gtest/gtest.h>

namespace ringtail {
namespace {

constexpr BlobDesc kBlob{.N = 4, .C = 16, .H = 8, .W = 8};  // 16 KiB

NodeNeeds Node(std::vector<int> inputs, bool needs_src, bool needs_dst, bool in_place) {
  NodeNeeds node;
  node.inputs = std::move(inputs);
  node.plan.dst = kBlob;
  node.plan.backward_needs_src = needs_src;
  node.plan.backward_needs_dst = needs_dst;
  node.plan.forward_in_place = node.plan.backward_in_place = in_place;
  node.learns = true;
  return node;
}

// Memory is planned in bytes: a blob of 2 bytes per element takes half of one of 4, and so does its
// gradient.
TEST(NetMemoryTest, CountsTheBytesOfEachBlobType) {
  std::vector<NodeNeeds> nodes = {Node({-1}, true, false, false)};
  for (int i = 0; i < 5; ++i) nodes.push_back(Node({i}, true, false, false));
  const int64_t f32 = PlanNetMemory(nodes, {}).total_bytes;
  for (NodeNeeds& node : nodes) node.plan.dst.type = BlobType::kBf16;
  EXPECT_EQ(PlanNetMemory(nodes, {}).total_bytes, f32 / 2);
}

TEST(NetMemoryTest, EvaluationFreesEachBlobAfterItsLastConsumer) {
  std::vector<NodeNeeds> nodes = {Node({-1}, true, false, false)};
  for (int i = 0; i < 9; ++i) nodes.push_back(Node({i}, true, false, false));
  const NetMemory evaluation = PlanNetMemory(nodes, {.training = false});
  const NetMemory training = PlanNetMemory(nodes, {});
  EXPECT_LE(evaluation.total_bytes, 3 * kBlob.bytes());  // src and dst; the logits live on
  EXPECT_GE(training.total_bytes, 9 * kBlob.bytes());    // every src is needed again
}

TEST(NetMemoryTest, WorksInPlaceOnlyWhereTheSourceIsNotReadLater) {
  // 0 -> 1 (in place over 0) -> 2; 0's own backward does not need its output
  const std::vector<NodeNeeds> free = {Node({-1}, true, false, false), Node({0}, false, true, true),
                                       Node({1}, false, false, false)};
  NetMemory memory = PlanNetMemory(free, {});
  EXPECT_EQ(memory.nodes[1].dst, memory.nodes[0].dst);
  EXPECT_EQ(memory.nodes[1].diff_src[0], memory.nodes[1].diff_dst);
  // 0's backward needs its output: 1 must not overwrite it
  std::vector<NodeNeeds> needed = free;
  needed[0].plan.backward_needs_dst = true;
  memory = PlanNetMemory(needed, {});
  EXPECT_NE(memory.nodes[1].dst, memory.nodes[0].dst);
  // two consumers of 0: the first must not overwrite what the second reads
  const std::vector<NodeNeeds> shared = {
      Node({-1}, true, false, false), Node({0}, false, false, true),
      Node({0, 1}, false, false, false), Node({2}, false, false, false)};
  memory = PlanNetMemory(shared, {});
  EXPECT_NE(memory.nodes[1].dst, memory.nodes[0].dst);
}

TEST(NetMemoryTest, TheFirstBackwardWritesTheOthersAddUp) {
  // 0 is read by 1, 2 and 3
  const std::vector<NodeNeeds> nodes = {
      Node({-1}, true, false, false), Node({0}, true, false, false),
      Node({0, 1}, true, false, false), Node({0, 2}, true, false, false),
      Node({3}, true, false, false)};
  const NetMemory memory = PlanNetMemory(nodes, {});
  EXPECT_FALSE(memory.nodes[3].accumulate[0]);
  EXPECT_EQ(memory.nodes[3].diff_src[0], memory.nodes[0].diff_dst);
  EXPECT_TRUE(memory.nodes[2].accumulate[0]);
  EXPECT_TRUE(memory.nodes[1].accumulate[0]);
  EXPECT_NE(memory.nodes[1].diff_src[0], memory.nodes[0].diff_dst);
}

TEST(NetMemoryTest, WhatDoesNotLearnHasNoGradient) {
  std::vector<NodeNeeds> nodes = {Node({-1}, false, false, false), Node({0}, true, false, false),
                                  Node({1}, true, false, false)};
  nodes[0].learns = false;  // for example a pooling of the images
  const NetMemory memory = PlanNetMemory(nodes, {});
  EXPECT_EQ(memory.nodes[0].diff_dst, kNoBuffer);
  EXPECT_EQ(memory.nodes[1].diff_src[0], kNoBuffer);
  EXPECT_NE(memory.nodes[1].diff_dst, kNoBuffer);
}

TEST(NetMemoryTest, RecomputedBlobsLiveTwiceButNotInBetween) {
  // convolution (0, 2, 4, ...) and batch norm (1, 3, 5, ...), alternating
  std::vector<NodeNeeds> nodes;
  for (int i = 0; i < 21; ++i) {
    nodes.push_back(Node({i - 1}, true, false, false));
    nodes.back().plan.recomputable = i % 2 == 1;
  }
  const NetMemory kept = PlanNetMemory(nodes, {}),
                  dropped = PlanNetMemory(nodes, {.recompute = true});
  EXPECT_GE(kept.total_bytes, 20 * kBlob.bytes());
  EXPECT_LE(dropped.total_bytes, 14 * kBlob.bytes());
  EXPECT_NE(dropped.nodes[1].recomputed_dst, kNoBuffer);
  EXPECT_EQ(dropped.nodes[2].recompute,
            std::vector<int>{1});  // before the backward of its consumer
  EXPECT_EQ(kept.nodes[1].recomputed_dst, kNoBuffer);
  EXPECT_EQ(PlanNetMemory(nodes, {.training = false, .recompute = true}).nodes[1].recomputed_dst,
            kNoBuffer);
}

TEST(NetMemoryTest, RecomputesBeforeTheFirstOfSeveralConsumers) {
  std::vector<NodeNeeds> nodes = {Node({-1}, true, false, false), Node({0}, true, false, false),
                                  Node({1}, true, false, false), Node({1, 2}, true, false, false),
                                  Node({3}, true, false, false)};
  nodes[1].plan.recomputable = true;
  const NetMemory memory = PlanNetMemory(nodes, {.recompute = true});
  EXPECT_EQ(memory.nodes[3].recompute, std::vector<int>{1});
  EXPECT_TRUE(memory.nodes[2].recompute.empty());
}

// 0 -> 1, a batch norm -> 2, a convolution -> 3
std::vector<NodeNeeds> Deferrable(bool forward, bool backward) {
  std::vector<NodeNeeds> nodes = {Node({-1}, true, false, false), Node({0}, true, false, false),
                                  Node({1}, true, false, false), Node({2}, true, false, false)};
  nodes[1].plan.recomputable = nodes[1].plan.fusion.dst_is_affine = true;
  nodes[1].plan.state_bytes = 64;
  nodes[2].plan.fusion.forward_takes_affine = forward;
  nodes[2].plan.fusion.backward_takes_affine = backward;
  return nodes;
}

TEST(NetMemoryTest, DefersInTheDirectionsInWhichTheConsumerMaps) {
  for (const bool forward : {false, true}) {
    for (const bool backward : {false, true}) {
      const NodePlacement node =
          PlanNetMemory(Deferrable(forward, backward), {.recompute = true, .defer = true}).nodes[1];
      EXPECT_EQ(node.deferred_forward, forward);
      EXPECT_EQ(node.deferred_backward, backward);
      EXPECT_EQ(node.dst == kNoBuffer, forward);
      EXPECT_EQ(node.recomputed_dst == kNoBuffer, backward);
    }
  }
  // Not recomputed: what must be written for backward is written in forward.
  const NetMemory kept = PlanNetMemory(Deferrable(true, false), {.defer = true});
  EXPECT_FALSE(kept.nodes[1].deferred_forward);
  EXPECT_NE(kept.nodes[1].dst, kNoBuffer);
}

TEST(NetMemoryTest, DefersOnlyBlobsThatOneConsumerMaps) {
  const auto deferred = [](const std::vector<NodeNeeds>& nodes, bool defer = true) {
    const NodePlacement node = PlanNetMemory(nodes, {.recompute = true, .defer = defer}).nodes[1];
    return node.deferred_forward || node.deferred_backward;
  };
  EXPECT_TRUE(deferred(Deferrable(true, true)));
  EXPECT_FALSE(deferred(Deferrable(true, true), false));
  std::vector<NodeNeeds> nodes = Deferrable(true, true);
  nodes[3].inputs = {2, 1};
  EXPECT_FALSE(deferred(nodes));
  nodes = Deferrable(true, true);
  nodes[1].plan.fusion.dst_is_affine = false;
  EXPECT_FALSE(deferred(nodes));
  nodes = Deferrable(true, true);
  nodes[1].inputs = {-1};  // the images are not the net's
  EXPECT_FALSE(deferred(nodes));
}

TEST(NetMemoryTest, EvaluationKeepsWhatADeferredBlobIsMadeOf) {
  std::vector<NodeNeeds> nodes = Deferrable(true, false);
  nodes[1].plan.forward_in_place = true;
  const NetMemory memory =
      PlanNetMemory(nodes, {.training = false, .recompute = true, .defer = true});
  EXPECT_EQ(memory.nodes[1].dst, kNoBuffer);
  // 2 reads 0's dst and 1's state while it writes
  EXPECT_NE(memory.nodes[2].dst, memory.nodes[0].dst);
  const int64_t state = memory.nodes[1].state;
  EXPECT_TRUE(state >= memory.nodes[2].dst + kBlob.bytes() || state < memory.nodes[2].dst);
}

}  // namespace
}  // namespace ringtail
