#include "data/class_balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/data/memory_dataset.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(ClassBalanceTest, CountsWhatIsGivenAndLabelled) {
  MemoryDataset dataset;
  for (const int32_t label : {0, 1, 1, -1, 1}) dataset.Add("a", label, {});
  EXPECT_THAT(ClassCounts(dataset, std::vector<int64_t>{0, 1, 2, 3}), ElementsAre(1, 2));
}

TEST(ClassBalanceTest, PowerOneIsSklearnsBalanced) {
  const std::vector<int64_t> counts = {900, 90, 10};
  EXPECT_THAT(ClassWeights(counts, 1),
              ElementsAre(FloatEq(1000 / (3 * 900.0F)), FloatEq(1000 / (3 * 90.0F)),
                          FloatEq(1000 / (3 * 10.0F))));
  EXPECT_THAT(ClassWeights(counts, 0), ElementsAre(1, 1, 1));
}

TEST(ClassBalanceTest, TheMeanOfTheImagesIsOneAndTheRatioThePower) {
  const std::vector<int64_t> counts = {900, 0, 9};
  for (const double power : {0.0, 0.25, 0.5, 1.0}) {
    const std::vector<float> weights = ClassWeights(counts, power);
    EXPECT_NEAR(900 * weights[0] + 9 * weights[2], 909, 1e-3) << power;
    EXPECT_NEAR(weights[2] / weights[0], std::pow(100, power), 1e-4) << power;
    EXPECT_EQ(weights[1], 1);
  }
}

TEST(ClassBalanceTest, DescribesFewByNameAndManyByTheirEnds) {
  const std::vector<int64_t> counts = {900, 0, 9};
  EXPECT_EQ(DescribeClassWeights({"cat", "cow", "dog"}, counts, 1), "cat 0.505, dog 50.5");
  std::vector<std::string> names;
  std::vector<int64_t> many;
  for (int64_t i = 1; i <= 11; ++i) {
    names.push_back("c" + std::to_string(i));
    many.push_back(10 * i);
  }
  EXPECT_EQ(DescribeClassWeights(names, many, 1), "from 0.545 (c11) to 6 (c1)");
}

}  // namespace
}  // namespace ringtail
