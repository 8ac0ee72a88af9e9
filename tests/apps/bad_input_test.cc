// Bad input and lack of resources: broken images, few threads, names with control characters. Each
// ends in a sentence that says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <string>

#include "core/machine/thread_budget.h"
#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class BadInputTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    std::ofstream(Path("tiny.textproto")) << TinyConfigText();
    const ProcessResult train = Train(TinyImages(), "run", {"--set", "train.epochs=1"});
    ASSERT_EQ(train.exit_code, 0) << train.err;
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }

  static ProcessResult Train(const std::string& data, const std::string& output,
                             const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "train", "--config", Path("tiny.textproto"), "--data", data, "--output", Path(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunDogsVsCats(arguments);
  }
  // The checkpoint of the run above, which evaluates each image twice.
  static ProcessResult Predict(const std::string& images) {
    return RunDogsVsCats({"predict", "--checkpoint", Path("run/final.safetensors"), "--set",
                          "train.evaluate_flipped=true", "--images", images});
  }
  static void CopyImages(const std::string& to) {
    std::filesystem::copy(TinyImages(), to, std::filesystem::copy_options::recursive);
  }
  static int Count(const std::string& text, const std::string& word) {
    int count = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      ++count;
    }
    return count;
  }

  static TempDir* folder_;
};
TempDir* BadInputTest::folder_ = nullptr;

TEST_F(BadInputTest, PredictNamesABadImageOnce) {
  CopyImages(Path("some"));
  std::ofstream(Path("some/train/cat.3.jpg"), std::ios::trunc) << "words";
  std::ofstream(Path("some/train/drawing.heic")) << "anything";
  const ProcessResult result = Predict(Path("some"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(Count(result.err, "cat.3.jpg"), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("1 of 48 images could not be read"));
  EXPECT_THAT(result.err, HasSubstr("48 images (1 image of a format that is not read (.heic)"));
  EXPECT_THAT(result.out, ContainsRegex("cat.3.jpg +-\n"));
}

// What a folder lists is what is read.
TEST_F(BadInputTest, PredictReadsEveryFormatThatItLists) {
  std::filesystem::create_directories(Path("formats"));
  const cv::Mat drawn = cv::imread(TinyImages() + "/train/cat.0.jpg");
  ASSERT_TRUE(cv::imwrite(Path("formats/a.png"), drawn));
  ASSERT_TRUE(cv::imwrite(Path("formats/b.tif"), drawn));
  ASSERT_TRUE(cv::imwrite(Path("formats/c.webp"), drawn, {cv::IMWRITE_WEBP_QUALITY, 101}));
  std::ofstream(Path("formats/d.gif")) << "GIF89a";
  std::ofstream(Path("formats/e.heic")) << "....ftypheic";
  const ProcessResult result = Predict(Path("formats"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("3 images (2 images of formats that are not read (.gif, .heic)"));
  const auto answer = [&](const std::string& name) {  // behind the name, "cat 0.61"
    const size_t at = result.out.find(name) + name.size();
    std::string text = result.out.substr(at, result.out.find('\n', at) - at);
    return text.erase(0, text.find_first_not_of(' '));
  };
  EXPECT_THAT(answer("a.png"), ContainsRegex("cat|dog"));
  EXPECT_EQ(answer("b.tif"), answer("a.png"));
  EXPECT_EQ(answer("c.webp"), answer("a.png"));
  for (const char* name : {"formats/d.gif", "formats/e.heic"}) {
    EXPECT_THAT(Predict(Path(name)).err, HasSubstr("which is not read; convert it to JPEG or PNG"));
  }
}

TEST_F(BadInputTest, PredictFailsIfNothingCouldBeRead) {
  std::ofstream(Path("words.jpg")) << "words";
  const ProcessResult result = Predict(Path("words.jpg"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(Count(result.err, "left out"), 1) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the only image cannot be used"));
}

TEST_F(BadInputTest, TooManyBadImagesAreAllListed) {
  CopyImages(Path("bad"));
  for (int i = 0; i < 7; ++i) {
    std::ofstream(Path("bad/train/dog." + std::to_string(i) + ".jpg"), std::ios::trunc).flush();
  }
  const ProcessResult refused = Train(Path("bad"), "of_bad", {});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("7 of 48 images cannot be used"));
  EXPECT_THAT(refused.err, HasSubstr("--set data.bad_images.max_fraction=0.15"));
  EXPECT_THAT(refused.err, HasSubstr("all of them: " + Path("of_bad/bad_images.csv")));
  const std::string list = ReadFileText(Path("of_bad/bad_images.csv"), 1 << 16).value();
  for (int i = 0; i < 7; ++i) {
    EXPECT_THAT(list, HasSubstr("dog." + std::to_string(i) + ".jpg,is empty\n"));
  }
  // As the message advises.
  const ProcessResult told =
      Train(Path("bad"), "of_bad",
            {"--set", "data.bad_images.max_fraction=0.15", "--set", "train.epochs=1"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
}

TEST_F(BadInputTest, ALackOfThreadsIsASentence) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the address space cannot be limited";
#endif
  // The limit has no room for 64 stacks besides the program.
  const ProcessResult result = RunProcess({"/bin/sh", "-c",
                                           "ulimit -s 65536; ulimit -v 2000000; exec " RT_BINARY_DIR
                                           "/bin/dogs_vs_cats time --threads 64 --config '" +
                                               Path("tiny.textproto") + "'"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("threads could be started"),
                                HasSubstr("2000000 KiB of address space (ulimit -v)"),
                                HasSubstr("--threads"), Not(HasSubstr("terminate called"))));
}

TEST_F(BadInputTest, MoreThanTwiceAsManyThreadsAsCoresAreAWarning) {
  const int cores = CoresOfProcess(UsableCores(), OnlineCores(), 1);
  const auto time = [&](int threads) {
    return RunDogsVsCats({"time", "--config", Path("tiny.textproto"), "--batch", "2",
                          "--iterations", "1", "--threads", std::to_string(threads)});
  };
  const ProcessResult many = time(2 * cores + 1), some = time(2 * cores);
  EXPECT_EQ(many.exit_code, 0) << many.err;
  EXPECT_THAT(many.err, HasSubstr("take turns"));
  EXPECT_THAT(many.err, HasSubstr("--threads " + std::to_string(cores) + " is faster"));
  EXPECT_THAT(some.err, Not(HasSubstr("take turns")));
}

TEST_F(BadInputTest, NamesInConfigsAreEscapedOnTheTerminal) {
  for (const std::string name : {"name: 'a\x1B[2J'", "layer { name: 'a\x1B[2J' linear {} }"}) {
    std::ofstream(Path("rude.textproto")) << "net { " << name << " }";
    const ProcessResult result = RunDogsVsCats({"summary", "--config", Path("rude.textproto")});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, Not(HasSubstr("\x1B"))) << name;
    EXPECT_THAT(result.out, Not(HasSubstr("\x1B"))) << name;
  }
}

TEST_F(BadInputTest, AWrongImageSizeIsReportedForItsFlag) {
  const ProcessResult result = RunDogsVsCats({"time", "--image-size", "4"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("--image-size"), HasSubstr("8"), HasSubstr("1024"),
                                Not(HasSubstr("data.image_size"))));
}

}  // namespace
}  // namespace ringtail
