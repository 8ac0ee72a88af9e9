#include "apps/trainer/data_warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Labels only.
class LabelsDataset : public Dataset {
 public:
  LabelsDataset(std::vector<std::string> names, const std::vector<int>& counts,
                std::vector<std::string> empty)
      : names_(std::move(names)), empty_(std::move(empty)) {
    for (size_t c = 0; c < counts.size(); ++c) {
      for (int i = 0; i < counts[c]; ++i) samples_.push_back({"x", static_cast<int32_t>(c)});
    }
  }
  const std::vector<Sample>& samples() const override { return samples_; }
  const std::vector<std::string>& class_names() const override { return names_; }
  std::vector<std::string> empty_classes() const override { return empty_; }
  std::string Describe() const override { return ""; }
  StatusOr<std::vector<std::byte>> Read(int64_t /*i*/) const override { return NotFound("none"); }

 private:
  std::vector<Sample> samples_;
  std::vector<std::string> names_, empty_;
};

std::vector<std::string> Warnings(const std::vector<int>& counts, int batch, int64_t global_batch,
                                  float class_balance = 0,
                                  const std::vector<std::string>& empty = {}) {
  std::vector<std::string> names = {"cat", "dog", "fox", "owl"};
  names.resize(counts.size());
  TrainingData data;
  data.dataset = std::make_unique<LabelsDataset>(names, counts, empty);
  for (int64_t i = 0; i < std::ssize(data.dataset->samples()); ++i) data.split.train.push_back(i);
  RunConfig config;
  config.mutable_train()->set_batch(batch);
  config.mutable_data()->set_class_balance(class_balance);
  return DataWarnings(data, config, global_batch);
}

TEST(DataWarningsTest, OrdinaryDataHasNone) {
  EXPECT_THAT(Warnings({100, 90}, 16, 16), IsEmpty());
  EXPECT_THAT(Warnings({100, 10}, 16, 16), IsEmpty()) << "10:1 is the limit";
  EXPECT_THAT(Warnings({48, 48}, 32, 32), IsEmpty()) << "three steps";
}

TEST(DataWarningsTest, OneClass) {
  EXPECT_THAT(
      Warnings({30, 0}, 8, 8),
      ElementsAre("all training images are of one class, 'cat', so there is nothing to tell "
                  "apart and every answer will be 'cat'; add images of another class"));
}

TEST(DataWarningsTest, ClassesWithoutImages) {
  EXPECT_THAT(Warnings({30, 0, 30}, 8, 8),
              ElementsAre("there is no image of class 'dog' to train on, so the network will never "
                          "answer it; add images, or split them in another way (data.split)"));
  EXPECT_THAT(
      Warnings({30, 30}, 8, 8, 0, {"rabbit"}),
      ElementsAre("the class folder 'rabbit' has no images, so the network will not know this "
                  "class; put images there, or remove it"));
  EXPECT_THAT(Warnings({30, 30}, 8, 8, 0, {"1", "2", "3", "4", "5", "6"}),
              ElementsAre("the class folders '1', '2', '3', '4', '5', ... have no images, so the "
                          "network will not know these classes; put images there, or remove them"));
}

TEST(DataWarningsTest, VeryFewSteps) {
  EXPECT_THAT(
      Warnings({300, 240}, 256, 256),
      ElementsAre("540 training images in batches of 256 are 2 steps an epoch, and weights change "
                  "only once a step: --set train.batch=32 makes 16 steps, or take more epochs "
                  "(train.epochs)"));
  EXPECT_THAT(
      Warnings({300, 240}, 256, 512),
      ElementsAre("540 training images in batches of 512 are 1 step an epoch, and weights change "
                  "only once a step: --set train.batch=16 makes 16 steps, or take more epochs "
                  "(train.epochs)"));
  EXPECT_THAT(Warnings({2, 0, 1}, 1, 2), testing::SizeIs(1)) << "no batch is smaller";
}

TEST(DataWarningsTest, CountsFarApart) {
  const auto expected = ElementsAre(
      "class 'cat' has 1,100 images to train on and 'fox' only 50: the network may seldom answer "
      "'fox'; --set data.class_balance=0.5 lets rare classes count more in the loss (1: all "
      "classes "
      "the same)");
  EXPECT_THAT(Warnings({1100, 400, 50}, 16, 16), expected);
  EXPECT_THAT(Warnings({1100, 400, 50}, 16, 16, 0.5F), IsEmpty()) << "it is done already";
}

// Both verbs that train say so before the first step; train shows the weights, too.
TEST(DataWarningsTest, AreSaidBeforeTheFirstStep) {
  const TempDir folder;
  const std::filesystem::path images = folder.File("images");
  for (const char* name : {"cat", "dog", "fox"}) std::filesystem::create_directories(images / name);
  int cats = 0, dogs = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(TinyImages())) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("cat.") && ++cats <= 24) {
      std::filesystem::copy_file(file, images / "cat" / name);
    } else if (name.starts_with("dog.") && ++dogs <= 2) {
      std::filesystem::copy_file(file, images / "dog" / name);
    }
  }
  ASSERT_GE(cats, 24);
  ASSERT_TRUE(WriteFileAtomic(folder.File("tiny.textproto"), TinyConfigText()).ok());
  const std::vector<std::string> common = {
      "--config", folder.File("tiny.textproto"),      "--data", images.string(), "--threads", "1",
      "--set",    "data.split.validation_fraction=0", "--set",  "train.batch=16"};
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), common.begin(), common.end());
    ProcessResult result = RunDogsVsCats(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result;
  };
  const auto has_all =
      testing::AllOf(testing::HasSubstr("the class folder 'fox' has no images"),
                     testing::HasSubstr("26 training images in batches of 16 are 1 step an epoch"),
                     testing::HasSubstr("class 'cat' has 24 images to train on and 'dog' only 2"));
  EXPECT_THAT(run({"lr-find", "--steps", "60"}).err, has_all);
  const std::vector<std::string> train = {"train",       "--output", folder.File("run"),
                                          "--no-report", "--set",    "train.epochs=1"};
  EXPECT_THAT(run(train).err, has_all);
  std::vector<std::string> balanced = train;
  balanced[2] = folder.File("balanced");
  balanced.insert(balanced.end(),
                  {"--set", "data.class_balance=1", "--set", "data.augment.mixup.alpha=0.2"});
  const ProcessResult result = run(balanced);
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("data.class_balance")));
  EXPECT_THAT(result.out,
              testing::HasSubstr("weights of classes in the training loss: cat 0.542, dog 6.5"));
  EXPECT_THAT(result.out, testing::HasSubstr("training images: mixup (alpha 0.2)"));
  EXPECT_THAT(result.out, testing::HasSubstr("mixed images: accuracy"));
}

}  // namespace
}  // namespace ringtail
