// Splits are stratified, complete, and never change.
#include "data/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Sample> KaggleSamples(int cats, int dogs) {
  std::vector<Sample> samples;
  samples.reserve(cats + dogs);
  for (int i = 0; i < cats; ++i) samples.push_back({"cat." + std::to_string(i) + ".jpg", 0});
  for (int i = 0; i < dogs; ++i) samples.push_back({"dog." + std::to_string(i) + ".jpg", 1});
  return samples;
}

SplitConfig Fraction(double fraction, uint64_t seed = 1) {
  SplitConfig config;
  config.set_validation_fraction(fraction);
  config.set_seed(seed);
  return config;
}

SplitConfig Numbers(int64_t train_first, int64_t train_last, int64_t first, int64_t last) {
  SplitConfig config;
  config.mutable_train()->set_first(train_first);
  config.mutable_train()->set_last(train_last);
  config.mutable_validation()->set_first(first);
  config.mutable_validation()->set_last(last);
  return config;
}

std::vector<std::string> KeysOf(const std::vector<int64_t>& indices,
                                const std::vector<Sample>& samples) {
  std::vector<std::string> keys;
  keys.reserve(indices.size());
  for (const int64_t i : indices) keys.push_back(samples[i].key);
  return keys;
}

std::string ErrorOf(const SplitConfig& config, const std::vector<Sample>& samples) {
  const auto split = SplitDataset(config, samples);
  if (split.ok()) return "no error";
  EXPECT_EQ(split.status().code(), StatusCode::kInvalidArgument);
  return split.status().message();
}

TEST(SplitTest, ByFractionIsStratifiedAndComplete) {
  const auto samples = KaggleSamples(1000, 301);
  const auto split = SplitDataset(Fraction(0.1), samples);
  ASSERT_TRUE(split.ok());
  const auto is_cat = [&](int64_t i) { return samples[i].label == 0; };
  EXPECT_EQ(std::count_if(split->validation.begin(), split->validation.end(), is_cat), 100);
  EXPECT_EQ(split->validation.size(), 130u);
  EXPECT_TRUE(std::is_sorted(split->train.begin(), split->train.end()));
  EXPECT_TRUE(std::is_sorted(split->validation.begin(), split->validation.end()));
  std::set<int64_t> all(split->train.begin(), split->train.end());
  all.insert(split->validation.begin(), split->validation.end());
  EXPECT_EQ(all.size(), 1301u);
  EXPECT_EQ(split->train.size() + split->validation.size(), 1301u);
}

// If this changes, all validation sets change, and old accuracies are meaningless.
TEST(SplitTest, GoldenKeys) {
  const auto samples = KaggleSamples(20, 20);
  const auto split = SplitDataset(Fraction(0.15, 1), samples);
  EXPECT_THAT(
      KeysOf(split->validation, samples),
      ElementsAre("cat.1.jpg", "cat.6.jpg", "cat.12.jpg", "dog.1.jpg", "dog.3.jpg", "dog.4.jpg"));
  const auto other = SplitDataset(Fraction(0.15, 2), samples);
  EXPECT_THAT(
      KeysOf(other->validation, samples),
      ElementsAre("cat.0.jpg", "cat.5.jpg", "cat.6.jpg", "dog.11.jpg", "dog.16.jpg", "dog.17.jpg"));
}

TEST(SplitTest, EachImageKeepsItsPartInAnotherOrderOfTheList) {
  auto samples = KaggleSamples(50, 50);
  auto before = KeysOf(SplitDataset(Fraction(0.2), samples)->validation, samples);
  std::reverse(samples.begin(), samples.end());
  auto after = KeysOf(SplitDataset(Fraction(0.2), samples)->validation, samples);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(before, after);
}

TEST(SplitTest, FractionZeroTrainsOnEverything) {
  const auto split = SplitDataset(Fraction(0), KaggleSamples(5, 5));
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->train.size(), 10u);
  EXPECT_TRUE(split->validation.empty());
}

TEST(SplitTest, AClassMayHaveNoImages) {
  const auto split = SplitDataset(Fraction(0.5), KaggleSamples(4, 0));
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->validation.size(), 2u);
  EXPECT_EQ(split->train.size(), 2u);
}

TEST(SplitTest, UnlabelledImagesAreInNeitherPart) {
  auto samples = KaggleSamples(10, 10);
  samples.push_back({"1.jpg", -1});
  for (const SplitConfig& config : {Fraction(0.5), Numbers(0, 4, 5, 9)}) {
    const auto split = SplitDataset(config, samples);
    ASSERT_TRUE(split.ok());
    EXPECT_EQ(split->train.size() + split->validation.size(), 20u);
  }
}

TEST(SplitTest, ByNumbersOfKagglesNames) {
  const auto samples = KaggleSamples(12500, 12500);
  const auto split = SplitDataset(Numbers(0, 9999, 10000, 11249), samples);
  ASSERT_TRUE(split.ok());
  EXPECT_EQ(split->train.size(), 20000u);
  EXPECT_EQ(split->validation.size(), 2500u);
  EXPECT_EQ(samples[split->train[9999]].key, "cat.9999.jpg");
  EXPECT_EQ(samples[split->train[10000]].key, "dog.0.jpg");
  EXPECT_EQ(samples[split->validation.front()].key, "cat.10000.jpg");
  EXPECT_EQ(samples[split->validation.back()].key, "dog.11249.jpg");
}

TEST(SplitTest, ByNumbersOfClassFolders) {
  const std::vector<Sample> samples = {{"Cat/7.jpg", 0}, {"Cat/other.jpg", 0}, {"Dog/8.jpg", 1}};
  const auto split = SplitDataset(Numbers(0, 7, 8, 8), samples);
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->train, ElementsAre(0));
  EXPECT_THAT(split->validation, ElementsAre(2));
}

SplitConfig Fold(int32_t fold, int32_t folds, uint64_t seed = 1) {
  SplitConfig config;
  config.set_folds(folds);
  config.set_fold(fold);
  config.set_seed(seed);
  return config;
}

// Of 3 classes with 103, 52 and 4 images.
std::vector<Sample> ThreeClasses() {
  auto samples = KaggleSamples(103, 52);
  for (int i = 0; i < 4; ++i) samples.push_back({"fox." + std::to_string(i) + ".jpg", 2});
  return samples;
}

TEST(SplitTest, FoldsDivideEveryClassEvenly) {
  const auto samples = ThreeClasses();
  for (const int32_t folds : {2, 3, 5, 10}) {
    std::vector<int> validated(samples.size());
    std::vector<int64_t> sizes;
    std::map<int32_t, std::vector<int64_t>> of_class;
    for (int32_t fold = 0; fold < folds; ++fold) {
      const Split split = SplitDataset(Fold(fold, folds), samples).value();
      EXPECT_EQ(split.train.size() + split.validation.size(), samples.size());
      std::vector<int64_t> all;
      std::set_union(split.train.begin(), split.train.end(), split.validation.begin(),
                     split.validation.end(), std::back_inserter(all));
      EXPECT_EQ(all.size(), samples.size()) << "no image is in both parts";
      std::map<int32_t, int64_t> counts{{0, 0}, {1, 0}, {2, 0}};
      for (const int64_t i : split.validation) {
        ++validated[i];
        ++counts[samples[i].label];
      }
      sizes.push_back(std::ssize(split.validation));
      for (const auto& [label, count] : counts) of_class[label].push_back(count);
    }
    EXPECT_THAT(validated, testing::Each(1)) << "each image in one fold";
    const auto differ_by_one = [](const std::vector<int64_t>& counts) {
      return std::ranges::max(counts) - std::ranges::min(counts) <= 1;
    };
    EXPECT_TRUE(differ_by_one(sizes)) << folds;
    for (const auto& [label, counts] : of_class) EXPECT_TRUE(differ_by_one(counts)) << label;
  }
}

// If this changes, accuracies of old folds are meaningless.
TEST(SplitTest, GoldenKeysOfAFold) {
  const auto samples = KaggleSamples(10, 9);
  const auto keys = [&](const SplitConfig& config, const std::vector<Sample>& list) {
    auto found = KeysOf(SplitDataset(config, list).value().validation, list);
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_THAT(keys(Fold(1, 4), samples),
              ElementsAre("cat.0.jpg", "cat.4.jpg", "cat.6.jpg", "dog.0.jpg", "dog.6.jpg"));
  EXPECT_THAT(keys(Fold(1, 4, 2), samples),
              ElementsAre("cat.0.jpg", "cat.1.jpg", "cat.8.jpg", "dog.6.jpg", "dog.7.jpg"));
  auto reversed = samples;
  std::reverse(reversed.begin(), reversed.end());
  EXPECT_EQ(keys(Fold(1, 4), samples), keys(Fold(1, 4), reversed));
}

TEST(SplitTest, FoldsThatCannotBeAreErrors) {
  const auto samples = KaggleSamples(3, 3);
  EXPECT_THAT(ErrorOf(Fold(0, 1), samples), HasSubstr("folds is 1; it must be 2 to 1000, or 0"));
  EXPECT_THAT(ErrorOf(Fold(0, 1001), samples), HasSubstr("folds is 1001"));
  EXPECT_THAT(ErrorOf(Fold(4, 4), samples),
              HasSubstr("fold is 4; it must be 0 to 3, as folds is 4"));
  EXPECT_THAT(ErrorOf(Fold(-1, 4), samples), HasSubstr("fold is -1"));
  EXPECT_THAT(ErrorOf(Fold(2, 0), samples), HasSubstr("fold is 2 without folds"));
  EXPECT_THAT(ErrorOf(Fold(6, 7), samples), HasSubstr("split.folds 7 of 6 images leaves fold 6"));
  SplitConfig ranges = Numbers(0, 1, 2, 2);
  ranges.set_folds(2);
  EXPECT_THAT(ErrorOf(ranges, samples), HasSubstr("leave out split.train and split.validation"));
  EXPECT_THAT(ErrorOf(Fold(0, 2), {{"train/cat/1.jpg", 0, SplitPart::kTrain},
                                   {"val/cat/2.jpg", 0, SplitPart::kValidation}}),
              HasSubstr("already"));
}

TEST(SplitTest, ByFolders) {
  const std::vector<Sample> samples = {{"train/cat/1.jpg", 0, SplitPart::kTrain},
                                       {"train/cat/2.jpg", 0, SplitPart::kTrain},
                                       {"val/cat/3.jpg", 0, SplitPart::kValidation}};
  const auto split = SplitDataset(Fraction(0.9), samples);
  ASSERT_TRUE(split.ok());
  EXPECT_THAT(split->train, ElementsAre(0, 1));
  EXPECT_THAT(split->validation, ElementsAre(2));
}

TEST(SplitTest, WrongRangesAreErrors) {
  const auto samples = KaggleSamples(10, 10);
  EXPECT_THAT(ErrorOf(Numbers(0, 5, 5, 9), samples),
              HasSubstr("0..5 and split.validation 5..9 overlap"));
  EXPECT_THAT(ErrorOf(Numbers(5, 9, 0, 5), samples), HasSubstr("overlap"));
  EXPECT_THAT(ErrorOf(Numbers(0, 9, 3, 4), samples), HasSubstr("overlap"));
  EXPECT_THAT(ErrorOf(Numbers(4, 3, 5, 9), samples), HasSubstr("split.train 4..3"));
  EXPECT_THAT(ErrorOf(Numbers(-1, 3, 5, 9), samples), HasSubstr("0 <= first"));
  EXPECT_THAT(ErrorOf(Numbers(0, 5, 20, 30), samples), HasSubstr("split.validation 20..30"));
  EXPECT_THAT(ErrorOf(Numbers(20, 30, 0, 5), samples), HasSubstr("split.train 20..30"));
  SplitConfig half = Numbers(0, 5, 6, 9);
  half.clear_validation();
  EXPECT_THAT(ErrorOf(half, samples), HasSubstr("without split.validation"));
  half = Numbers(0, 5, 6, 9);
  half.mutable_validation()->clear_last();
  EXPECT_THAT(ErrorOf(half, samples), HasSubstr("needs both first and last"));
}

TEST(SplitTest, AnEmptyPartIsAnError) {
  EXPECT_THAT(ErrorOf(Fraction(0.1), {}), HasSubstr("none of the images has a label"));
  EXPECT_THAT(ErrorOf(Fraction(0.1), {{"1.jpg", -1}}), HasSubstr("none of the images has a label"));
  EXPECT_THAT(ErrorOf(Fraction(0.1), KaggleSamples(2, 2)), HasSubstr("none for validation"));
  EXPECT_THAT(ErrorOf(Fraction(0.9), KaggleSamples(1, 1)), HasSubstr("none for training"));
  for (const double fraction : {-0.1, 1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(ErrorOf(Fraction(fraction), KaggleSamples(9, 9)),
                HasSubstr("it must be at least 0 and less than 1"));
  }
}

}  // namespace
}  // namespace ringtail
