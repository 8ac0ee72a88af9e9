// libringtail.so as other programs see it: its symbols, and a program in C and one in Python that
// get the bits of `evaluate`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <opencv2/imgcodecs.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/evaluation/scored_images.h"
#include "core/storage/file.h"
#include "tests/apps/program.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kLibrary[] = RT_BINARY_DIR "/lib/libringtail.so.0";
constexpr char kSources[] = RT_SOURCE_DIR "/tests/apps/library/";

std::string Text(const std::string& path) { return ReadFileText(path, 1 << 20).value(); }

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A run with two classes, and two of its images.
class LibraryTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempDir;
    ASSERT_TRUE(
        TrainTiny(TinyConfig({"train.epochs=1", "train.evaluate_flipped=true"}), Model()).ok());
    fs::create_directories(Path("one"));
    fs::copy_file(TinyImages() + "/train/dog.1.jpg", Path("one/dog.1.jpg"));
    fs::copy_file(TinyImages() + "/train/cat.0.jpg", Path("one/cat.0.jpg"));
  }
  static void TearDownTestSuite() { delete folder_; }
  static std::string Path(const std::string& name) { return folder_->File(name); }
  static std::string Model() { return Path("run"); }

  // What `evaluate` says of an image that is alone in its batch.
  static std::vector<double> Evaluated(const std::string& image) {
    const TempDir alone;
    // (Two images, for two classes; each is a batch.)
    for (const char* name : {"cat.0.jpg", "dog.1.jpg"}) {
      fs::copy_file(Path("one/") + name, alone.File(name));
    }
    const ProcessResult result = RunDogsVsCats(
        {"evaluate", "--checkpoint", Model(), "--data", alone.path(), "--threads", "2", "--set",
         "train.evaluation_batch=1", "--csv", alone.File("scored.csv")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const ScoredImages scored = ParseScoredImages(Text(alone.File("scored.csv"))).value();
    for (int64_t i = 0; i < scored.images(); ++i) {
      if (scored.files[i] == image) return {scored.row(i).begin(), scored.row(i).end()};
    }
    ADD_FAILURE() << image << " was not evaluated";
    return {};
  }

  static TempDir* folder_;
};
TempDir* LibraryTest::folder_ = nullptr;

// "IMAGE CLASS PROBABILITY ..." -> probabilities by image.
std::map<std::string, std::vector<double>> ParseAnswers(const std::string& text) {
  std::map<std::string, std::vector<double>> answers;
  for (const std::string& line : Lines(text)) {
    std::istringstream words(line);
    std::string image, name, probability;
    words >> image;
    while (words >> name >> probability)
      answers[image].push_back(strtod(probability.c_str(), nullptr));
  }
  return answers;
}

TEST_F(LibraryTest, AProgramInCGetsTheBitsOfEvaluate) {
  const ProcessResult client = RunProcess({RT_BINARY_DIR "/tests/apps_library_client", Model(), "3",
                                           Path("one/cat.0.jpg"), Path("one/dog.1.jpg")});
  ASSERT_EQ(client.exit_code, 0) << client.err;
  EXPECT_THAT(client.err, IsEmpty());
  EXPECT_THAT(client.out, HasSubstr("cat.0.jpg cat 0x"));
  const auto answers = ParseAnswers(client.out);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers.at(Path("one/cat.0.jpg")), Evaluated("cat.0.jpg"));
  EXPECT_EQ(answers.at(Path("one/dog.1.jpg")), Evaluated("dog.1.jpg"));
}

TEST_F(LibraryTest, AProgramInCClassifiesPixelsAsAPngFileOfThem) {
  const cv::Mat drawn = cv::imread(Path("one/cat.0.jpg"));
  ASSERT_TRUE(cv::imwrite(Path("drawn.png"), drawn));
  ASSERT_TRUE(cv::imwrite(Path("drawn.ppm"), drawn));
  const ProcessResult client = RunProcess({RT_BINARY_DIR "/tests/apps_library_client", Model(), "2",
                                           Path("drawn.png"), Path("drawn.ppm")});
  ASSERT_EQ(client.exit_code, 0) << client.err;
  const auto answers = ParseAnswers(client.out);
  EXPECT_EQ(answers.at(Path("drawn.ppm")), answers.at(Path("drawn.png")));
}

TEST_F(LibraryTest, ErrorsAreReturnedAndNotPrinted) {
  std::ofstream(Path("note.jpg")) << "this is no image";
  const ProcessResult image =
      RunProcess({RT_BINARY_DIR "/tests/apps_library_client", Model(), "1", Path("note.jpg")});
  EXPECT_EQ(image.exit_code, 1);
  EXPECT_THAT(Lines(image.err), testing::ElementsAre(HasSubstr(Path("note.jpg"))));
  const ProcessResult model =
      RunProcess({RT_BINARY_DIR "/tests/apps_library_client", Path("none"), "1"});
  EXPECT_EQ(model.exit_code, 1);
  EXPECT_THAT(Lines(model.err), testing::ElementsAre(HasSubstr(Path("none"))));
}

// The lines that the README gives to users.
TEST_F(LibraryTest, TheExampleInPythonGetsTheBitsOfEvaluate) {
  const std::string readme = Text(RT_SOURCE_DIR "/apps/library/README.md");
  const size_t first = readme.find("    import ctypes");
  ASSERT_NE(first, std::string::npos);
  std::ofstream script(Path("classify.py"));
  for (const std::string& line : Lines(readme.substr(first))) {
    if (!line.starts_with("    ")) break;
    script << line.substr(4) << '\n';
  }
  script.close();
  const std::string image = Path("one/dog.1.jpg");
  const ProcessResult python = RunProcess({"python3", Path("classify.py"), Model(), image},
                                          {"LD_LIBRARY_PATH=" RT_BINARY_DIR "/lib"});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  EXPECT_THAT(python.err, IsEmpty());
  const std::vector<double> evaluated = Evaluated("dog.1.jpg");
  const auto answers = ParseAnswers(python.out);
  ASSERT_EQ(answers.size(), 1U) << python.out;
  EXPECT_EQ(answers.at(image).front(), *std::max_element(evaluated.begin(), evaluated.end()));
}

TEST_F(LibraryTest, ThreadsAndChildrenOfAPythonProcessGetTheSameBits) {
  const ProcessResult python = RunProcess(
      {"python3", std::string(kSources) + "forked.py", kLibrary, Model(), Path("one/dog.1.jpg")});
  ASSERT_EQ(python.exit_code, 0) << python.err;
  const std::vector<std::string> lines = Lines(python.out);
  ASSERT_EQ(lines.size(), 5U) << python.out;
  EXPECT_EQ(std::set<std::string>(lines.begin(), lines.end()).size(), 1U) << python.out;
}

// All that stands in the header, and nothing else.
TEST_F(LibraryTest, ShowsTheFunctionsOfItsHeader) {
  const std::string header = Text(RT_SOURCE_DIR "/apps/library/ringtail.h");
  std::set<std::string> declared;
  for (const std::string& line : Lines(header)) {
    if (!line.starts_with("RINGTAIL_API ")) continue;
    const size_t end = line.find('('), begin = line.rfind(' ', end) + 1;
    declared.insert(line.substr(begin, end - begin));
  }
  ASSERT_GE(declared.size(), 9U);
  const ProcessResult nm = RunProcess({"nm", "--dynamic", "--defined-only", kLibrary});
  ASSERT_EQ(nm.exit_code, 0) << nm.err;
  std::set<std::string> shown;
  for (const std::string& line : Lines(nm.out)) {
    if (line.find(" A ") != std::string::npos) continue;  // the name of the version
    shown.insert(line.substr(line.rfind(' ') + 1));
  }
  std::set<std::string> expected;
  for (const std::string& name : declared) expected.insert(name + "@@RINGTAIL_0");
  EXPECT_EQ(shown, expected);
}

TEST_F(LibraryTest, HasAVersionedNameAndStaysLoaded) {
  const ProcessResult readelf = RunProcess({"readelf", "--dynamic", "--wide", kLibrary});
  EXPECT_THAT(readelf.out, HasSubstr("soname: [libringtail.so.0]"));
  EXPECT_THAT(readelf.out, HasSubstr("NODELETE"));
}

}  // namespace
}  // namespace ringtail
