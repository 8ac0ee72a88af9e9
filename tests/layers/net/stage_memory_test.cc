// Memory of stages: of small chains by hand, of shipped networks against the whole net.
#include "layers/net/stage_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "apps/run.pb.h"
#include "core/config/text_config.h"
#include "layers/net/cut_points.h"
#include "layers/net/graph.h"
#include "layers/net/net.h"

namespace ringtail {
namespace {

constexpr BlobDesc kBlob{.N = 4, .C = 16, .H = 8, .W = 8};  // 16 KiB

// As a convolution: its backward reads its src again.
NodeNeeds Node(int input) {
  NodeNeeds node;
  node.inputs = {input};
  node.plan.dst = kBlob;
  node.plan.backward_needs_src = true;
  node.learns = true;
  return node;
}

std::vector<NodeNeeds> Chain(int count) {
  std::vector<NodeNeeds> nodes;
  nodes.reserve(count);
  for (int i = 0; i < count; ++i) nodes.push_back(Node(i - 1));
  return nodes;
}

TEST(StageMemoryTest, TheWholeNetIsAStage) {
  const std::vector<NodeNeeds> nodes = Chain(5);
  const StageMemory memory = PlanStageMemory(nodes, 0, 4, {});
  EXPECT_EQ(memory.step_bytes, PlanNetMemory(nodes, {}).total_bytes);
  EXPECT_EQ(memory.kept_bytes, 4 * kBlob.bytes());  // what nodes 1 .. 4 read again
}

// 0 reads images, 1 reads dst 0 again in backward; dst 1 leaves, its gradient arrives.
//   backward of 1: dst 0, its gradient, that of dst 1
TEST(StageMemoryTest, TheFirstStageKeepsWhatItReadsAgain) {
  const StageMemory memory = PlanStageMemory(Chain(4), 0, 1, {});
  EXPECT_EQ(memory.kept_bytes, kBlob.bytes());
  EXPECT_EQ(memory.step_bytes, 3 * kBlob.bytes());
  EXPECT_EQ(memory.BytesWith(1), 3 * kBlob.bytes());
  EXPECT_EQ(memory.BytesWith(3), 5 * kBlob.bytes());
}

// 2 reads what was received again, 3 reads dst 2 again: both are kept.
TEST(StageMemoryTest, TheLastStageKeepsWhatItReceives) {
  const StageMemory memory = PlanStageMemory(Chain(4), 2, 3, {});
  EXPECT_EQ(memory.kept_bytes, 2 * kBlob.bytes());
  EXPECT_EQ(memory.step_bytes, 3 * kBlob.bytes());
}

// The stages before hold nothing that trains: no gradient is made for them.
TEST(StageMemoryTest, WhatDoesNotTrainGetsNoGradient) {
  std::vector<NodeNeeds> nodes = Chain(3);
  const int64_t with_gradient = PlanStageMemory(nodes, 1, 2, {}).step_bytes;
  nodes[0].learns = false;
  // In backward of 1: its src, and the gradient of its dst.
  EXPECT_EQ(with_gradient, 3 * kBlob.bytes());
  EXPECT_EQ(PlanStageMemory(nodes, 1, 2, {}).kept_bytes, 2 * kBlob.bytes());
  nodes[1].plan.backward_needs_src = false;
  EXPECT_EQ(PlanStageMemory(nodes, 1, 2, {}).kept_bytes, kBlob.bytes());
}

TEST(StageMemoryTest, EvaluationKeepsNothing) {
  const StageMemory memory = PlanStageMemory(Chain(4), 1, 2, {.training = false});
  EXPECT_EQ(memory.kept_bytes, 0);
  EXPECT_EQ(memory.step_bytes, 2 * kBlob.bytes());
}

struct Planned {
  std::unique_ptr<Model> model;
  std::unique_ptr<Net> net;
};

Planned Plan(const std::string& name) {
  RunConfig config;
  const Status read = ReadTextConfig(std::string(RT_SOURCE_DIR) + "/configs/" + name + ".textproto",
                                     &config, nullptr);
  EXPECT_TRUE(read.ok()) << read.ToString();
  const int64_t size = config.data().image_size();
  Planned planned;
  planned.model = Model::Create(config.net(), size, nullptr, "net", /*allocate=*/false).value();
  planned.net =
      Net::Create(planned.model.get(), {.batch = 8, .image_size = size, .plan_only = true}).value();
  return planned;
}

TEST(StageMemoryTest, OfShippedNetworksCutInTwo) {
  const NetMemoryOptions options{.training = true, .recompute = true, .defer = true};
  for (const char* name : {"resnet50", "vgg11_bn", "mobilenet_v2", "alexnet"}) {
    SCOPED_TRACE(name);
    const Planned planned = Plan(name);
    const std::span<const NodeNeeds> needs = planned.net->needs();
    const int last = planned.model->graph().size() - 1;
    const StageMemory whole = PlanStageMemory(needs, 0, last, options);
    EXPECT_EQ(whole.step_bytes, planned.net->memory_bytes());
    int64_t least_larger_half = whole.step_bytes;
    for (const CutPoint& point : FindCutPoints(*planned.model, *planned.net)) {
      if (point.parts_batch_norm) continue;
      const StageMemory front = PlanStageMemory(needs, 0, point.node, options);
      const StageMemory back = PlanStageMemory(needs, point.node + 1, last, options);
      EXPECT_LE(front.kept_bytes, front.step_bytes);
      EXPECT_LE(back.kept_bytes, back.step_bytes);
      // What is kept is shared out; beside it the blob of the cut may be kept on both sides.
      EXPECT_GE(front.kept_bytes + back.kept_bytes, whole.kept_bytes);
      EXPECT_LE(front.kept_bytes + back.kept_bytes,
                whole.kept_bytes + 2 * planned.net->layers()[point.node].dst.bytes());
      least_larger_half = std::min(least_larger_half, std::max(front.step_bytes, back.step_bytes));
    }
    EXPECT_LT(least_larger_half, 0.8 * static_cast<double>(whole.step_bytes));
  }
}

}  // namespace
}  // namespace ringtail
