#include "core/parameter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace ringtail {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kLineFloats = 16;  // 64 bytes

ParameterSpec Spec(std::string name, Shape shape) { return {std::move(name), std::move(shape)}; }

std::unique_ptr<ParameterArena> MakeArena() {
  auto arena = ParameterArena::Create(
      {Spec("fc.weight", {2, 9}), Spec("fc.bias", {2}), Spec("conv.weight", {4, 3, 3, 3})},
      {Spec("bn.running_mean", {17}), Spec("bn.running_var", {17})});
  EXPECT_TRUE(arena.ok());
  return *std::move(arena);
}

TEST(Shape, ElementsAndText) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({64, 3, 7, 7}), 9408);
  EXPECT_EQ(NumElements({5, 0, 7}), 0);
  EXPECT_EQ(ShapeString({64, 3, 7, 7}), "64x3x7x7");
}

TEST(Shape, ElementsSaturate) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(NumElements({int64_t{1} << 62, 2}), kMost);
  EXPECT_EQ(NumElements({int64_t{1} << 40, int64_t{1} << 40, 3}), kMost);
  EXPECT_EQ(NumElements({int64_t{1} << 40, int64_t{1} << 40, 0}), 0);
}

TEST(ParameterArena, PlacesParametersInOrderOnCacheLines) {
  const auto arena = MakeArena();
  ASSERT_EQ(arena->parameters().size(), 3u);
  EXPECT_EQ(arena->num_parameters(), 18 + 2 + 108);
  int64_t end = 0;
  for (const Parameter& p : arena->parameters()) {
    EXPECT_EQ(p.offset % kLineFloats, 0) << p.spec.name;
    EXPECT_GE(p.offset, end) << p.spec.name;
    EXPECT_LT(p.offset, end + kLineFloats) << p.spec.name;
    EXPECT_EQ(p.elements, NumElements(p.spec.shape));
    EXPECT_FALSE(p.is_buffer);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p.value().data()) % 64, 0u);
    EXPECT_EQ(p.value().data(), arena->values().data() + p.offset);
    EXPECT_EQ(p.grad().data(), arena->grads().data() + p.offset);
    EXPECT_EQ(static_cast<int64_t>(p.value().size()), p.elements);
    end = p.offset + p.elements;
  }
  EXPECT_GE(static_cast<int64_t>(arena->values().size()), end);
  EXPECT_EQ(arena->values().size(), arena->grads().size());
}

TEST(ParameterArena, BuffersHaveTheirOwnBlock) {
  const auto arena = MakeArena();
  ASSERT_EQ(arena->buffers().size(), 2u);
  const Parameter& var = arena->buffers()[1];
  EXPECT_TRUE(var.is_buffer);
  EXPECT_EQ(var.offset, 2 * kLineFloats);
  EXPECT_EQ(var.value().data(), arena->buffer_values().data() + var.offset);
}

TEST(ParameterArenaDeathTest, BuffersHaveNoGradient) {
  const auto arena = MakeArena();
  EXPECT_DEATH((void)arena->buffers()[0].grad(), "no gradient");
}

TEST(ParameterArena, StartsAtZero) {
  const auto arena = MakeArena();
  EXPECT_THAT(arena->values(), Each(0.0f));
  EXPECT_THAT(arena->grads(), Each(0.0f));
  EXPECT_THAT(arena->buffer_values(), Each(0.0f));
}

TEST(ParameterArena, FindsByName) {
  const auto arena = MakeArena();
  EXPECT_EQ(arena->FindParameter("fc.bias"), &arena->parameters()[1]);
  EXPECT_EQ(arena->FindBuffer("bn.running_var"), &arena->buffers()[1]);
  EXPECT_EQ(arena->FindParameter("bn.running_var"), nullptr);
  EXPECT_EQ(arena->FindBuffer("fc"), nullptr);
}

TEST(ParameterArena, NamesAreUniqueOverBothLists) {
  const auto twice = ParameterArena::Create({Spec("a", {1}), Spec("a", {2})}, {});
  EXPECT_EQ(twice.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(twice.status().message(), HasSubstr("'a' exists twice"));
  EXPECT_FALSE(ParameterArena::Create({Spec("a", {1})}, {Spec("a", {1})}).ok());
}

TEST(ParameterArena, RefusesNetsLargerThanAnyMachine) {
  const Shape huge = {int64_t{1} << 31, int64_t{1} << 31, 9};
  const auto arena = ParameterArena::Create({Spec("fc.weight", huge)}, {});
  EXPECT_EQ(arena.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(arena.status().message(), HasSubstr("'fc.weight' of 2147483648x2147483648x9"));
  const Shape half = {int64_t{1} << 37, 1};
  EXPECT_FALSE(ParameterArena::Create({}, {Spec("a", half), Spec("b", half), Spec("c", {1})}).ok());
}

TEST(ParameterArena, CanBeEmpty) {
  const auto arena = ParameterArena::Create({}, {});
  ASSERT_TRUE(arena.ok());
  EXPECT_TRUE((*arena)->values().empty());
}

TEST(ParameterArena, SwapValuesExchangesWeightsAndBuffers) {
  const auto arena = MakeArena();
  AlignedBuffer values(arena->values().size_bytes()), buffers(arena->buffer_values().size_bytes());
  std::ranges::fill(values.floats(), 2.0f);
  std::ranges::fill(buffers.floats(), 3.0f);
  arena->values()[0] = 1;
  arena->grads()[0] = 5;
  arena->SwapValues(&values, &buffers);
  EXPECT_THAT(arena->parameters()[0].value(), Each(2.0f));
  EXPECT_THAT(arena->buffers()[0].value(), Each(3.0f));
  EXPECT_EQ(arena->grads()[0], 5) << "gradients stay";
  EXPECT_EQ(values.floats()[0], 1);
  arena->SwapValues(&values, &buffers);
  EXPECT_EQ(arena->parameters()[0].value()[0], 1);
}

TEST(ParameterArenaDeathTest, SwapValuesNeedsTheSameSizes) {
  const auto arena = MakeArena();
  AlignedBuffer small(64), buffers(arena->buffer_values().size_bytes());
  EXPECT_DEATH(arena->SwapValues(&small, &buffers), "sizes differ");
}

}  // namespace
}  // namespace ringtail
