#include "dist/collectives/algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringtail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AllreduceAlgorithms, AreFoundByName) {
  for (const AllreduceAlgorithm& algorithm : AllreduceAlgorithms()) {
    EXPECT_EQ(*FindAllreduce(algorithm.name), &algorithm);
    EXPECT_FALSE(algorithm.description.empty());
    EXPECT_FALSE(algorithm.description.ends_with('.'));
  }
}

TEST(AllreduceAlgorithms, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const Status status = FindAllreduce("rign").status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("unknown allreduce algorithm 'rign'; did you mean 'ring'?"),
                    HasSubstr("single_reducer, ring, recursive_doubling, halving_doubling, "
                              "binomial_tree, double_binary_tree, hierarchical")));
  EXPECT_THAT(FindAllreduce("").status().message(), Not(HasSubstr("did you mean")));
}

}  // namespace
}  // namespace ringtail
