// A Classifier gives the bits of ComputeLogits, which `predict` and `evaluate` print, from any
// number of threads, and errors as sentences.
#include "apps/library/classifier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <thread>

#include "core/parallel_for.h"
#include "core/storage/file.h"
#include "tests/apps/tiny_run.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::HasSubstr;

constexpr int kThreads = 2;

// The folder of a tiny run, trained once for each setting.
std::string TrainedRun(bool flipped) {
  static const TempDir folder;
  const std::string run = folder.File(flipped ? "flipped" : "plain");
  if (std::filesystem::exists(run)) return run;
  const std::string views = fmt::format("train.evaluate_flipped={}", flipped);
  EXPECT_TRUE(TrainTiny(TinyConfig({"train.epochs=1", views}), run).ok());
  return run;
}

std::unique_ptr<Classifier> Open(bool flipped) {
  return Classifier::Open(TrainedRun(flipped), kThreads).value();
}

// The drawn images, in the order of the data set.
std::vector<std::string> Paths(const Dataset& dataset) {
  std::vector<std::string> paths;
  for (const Sample& sample : dataset.samples()) {
    paths.push_back(TinyImages() + "/train/" + sample.key);
  }
  return paths;
}

TEST(Classifier, GivesTheBitsOfPredict) {
  SetNumComputeThreads(kThreads);
  for (const bool flipped : {false, true}) {
    const TrainedModel trained =
        ReadModelFile(TrainedRun(flipped) + "/final.safetensors", {}).value();
    const RunConfig& config = trained.loaded.config;
    ASSERT_EQ(config.train().evaluate_flipped(), flipped);
    const auto dataset = Dataset::Open(config.data()).value();
    const auto classifier = Open(flipped);
    EXPECT_EQ(classifier->class_names(), trained.class_names);
    const std::vector<std::string> paths = Paths(*dataset);
    for (int64_t i = 0; i < 12; ++i) {
      const ImageLogits alone = ComputeLogits(trained.model.get(), *dataset, {i}, config.data(),
                                              EvaluationOptionsOf(config))
                                    .value();
      const auto probabilities = classifier->ClassifyFile(paths[i]).value();
      EXPECT_EQ(probabilities, Softmax(alone.row(0))) << paths[i];
      const auto bytes = ReadFileBytes(paths[i], 1 << 24).value();
      EXPECT_EQ(classifier->ClassifyEncoded(bytes).value(), probabilities);
    }
  }
}

TEST(Classifier, SeesPixelsAsAFileOfThem) {
  const TempDir folder;
  const auto classifier = Open(/*flipped=*/true);
  cv::Mat pixels(70, 90, CV_8UC3);  // R G B
  cv::randu(pixels, 0, 256);
  cv::Mat bgr;
  cv::cvtColor(pixels, bgr, cv::COLOR_RGB2BGR);
  ASSERT_TRUE(cv::imwrite(folder.File("drawn.png"), bgr));
  ImageView view;
  view.pixels = pixels.data;
  view.width = pixels.cols;
  view.height = pixels.rows;
  view.row_bytes = pixels.step;
  const auto expected = classifier->ClassifyPixels(view).value();
  ASSERT_TRUE(cv::imwrite(folder.File("drawn.tif"), bgr));
  ASSERT_TRUE(cv::imwrite(folder.File("drawn.webp"), bgr, {cv::IMWRITE_WEBP_QUALITY, 101}));
  for (const char* name : {"drawn.png", "drawn.tif", "drawn.webp"}) {  // all without losses
    EXPECT_EQ(classifier->ClassifyFile(folder.File(name)).value(), expected) << name;
  }
}

TEST(Classifier, ServesSeveralThreadsAndLeavesTheirsAlone) {
  const auto dataset = Dataset::Open(TinyConfig().config.data()).value();
  const std::vector<std::string> paths = Paths(*dataset);
  const auto one = Open(/*flipped=*/false), other = Open(/*flipped=*/true);
  std::vector<std::vector<double>> expected;
  for (size_t i = 0; i < 8; ++i) {
    expected.push_back(one->ClassifyFile(paths[i]).value());
    expected.push_back(other->ClassifyFile(paths[i]).value());
  }
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t step = 0; step < 16; ++step) {
        const size_t i = (step + 5 * caller) % 16;
        const auto& classifier = i % 2 == 0 ? one : other;
        EXPECT_EQ(classifier->ClassifyFile(paths[i / 2]).value(), expected[i]);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();

  SetNumComputeThreads(3);
  EXPECT_TRUE(Classifier::Open(TrainedRun(false), 1).value()->ClassifyFile(paths[0]).ok());
  EXPECT_EQ(NumComputeThreads(), 3);
}

TEST(Classifier, ErrorsSayWhatIsWrong) {
  const TempDir folder;
  std::ofstream(folder.File("note.jpg")) << "this is no image";
  std::ofstream(folder.File("note.safetensors")) << "this is no network";
  EXPECT_THAT(Classifier::Open(folder.File("missing"), 0).status().message(),
              HasSubstr(folder.File("missing")));
  EXPECT_THAT(Classifier::Open(folder.path(), 0).status().message(),
              HasSubstr("there is no network in the folder"));
  EXPECT_THAT(Classifier::Open(folder.File("note.safetensors"), 0).status().message(),
              HasSubstr("note.safetensors"));
  EXPECT_THAT(Classifier::Open(TrainedRun(false), -1).status().message(),
              HasSubstr("-1 compute threads; use 1 .. 4096"));
  const auto classifier = Open(/*flipped=*/false);
  EXPECT_THAT(classifier->ClassifyFile(folder.File("none.jpg")).status().message(),
              HasSubstr("none.jpg"));
  EXPECT_THAT(classifier->ClassifyFile(folder.path()).status().message(), HasSubstr(folder.path()));
  EXPECT_THAT(classifier->ClassifyFile(folder.File("note.jpg")).status().message(),
              HasSubstr("note.jpg' "));
  EXPECT_THAT(classifier->ClassifyEncoded({}).status().message(),
              HasSubstr("the image in memory is empty"));
}

TEST(ComputeThread, HandsOnWhatIsThrown) {
  const auto thread = ComputeThread::Start().value();
  std::thread::id worker;
  EXPECT_THROW(thread->Run([] { throw std::runtime_error("no"); }), std::runtime_error);
  thread->Run([&] { worker = std::this_thread::get_id(); });
  EXPECT_NE(worker, std::this_thread::get_id());
}

}  // namespace
}  // namespace ringtail
