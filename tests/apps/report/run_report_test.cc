// Reports: hostile names, no scripts, no network, size, charts and tables, history.
#include "apps/report/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "apps/report/chart.h"
#include "apps/report/html.h"
#include "apps/report/stored_evaluation.h"
#include "apps/report/thumbnails.h"
#include "tests/apps/evaluation/four_images.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

RunReport Example() {
  RunReport report;
  report.name = "first";
  for (int64_t step = 1; step <= 1000; ++step) {
    report.history.training.push_back({.step = step,
                                       .epoch = 0.01 * static_cast<double>(step),
                                       .loss = 1.0 / static_cast<double>(step),
                                       .accuracy = 0.5,
                                       .learning_rate = 0.1});
  }
  report.history.evaluation = {{.step = 500, .epoch = 5, .loss = 0.4, .accuracy = 0.7},
                               {.step = 1000, .epoch = 10, .loss = 0.3, .accuracy = 0.8}};
  report.evaluation = {.network = "final.safetensors", .part = "validation"};
  report.evaluation->scored = FourImages();
  report.evaluation->worst = {
      {.file = "1.jpg", .label = "bee", .taken_for = "ant", .confidence = 0.875, .jpeg = "x"}};
  report.evaluation->best = {{.file = "0.jpg", .label = "ant", .jpeg = ""}};
  report.training_images = {{.file = "9.jpg", .label = "cow", .jpeg = "y"}};
  report.data = {{"images", "4 images"}};
  report.config = "net { name: \"a<b\" }";
  report.versions = "ringtail";
  return report;
}

// All start tags, lower case as written.
std::vector<std::string> Tags(const std::string& html) {
  std::vector<std::string> tags;
  const std::regex tag("<(/?[a-zA-Z!][a-zA-Z0-9]*)");
  for (std::sregex_iterator at(html.begin(), html.end(), tag), end; at != end; ++at) {
    tags.push_back((*at)[1]);
  }
  return tags;
}

TEST(RunReportTest, HasEverySection) {
  const std::string html = RenderReport(Example());
  for (const char* heading : {"Curves", "Evaluation", "Worst mistakes", "Best guesses",
                              "Training images", "Data", "Config", "Versions"}) {
    EXPECT_THAT(html, HasSubstr("<h2>" + std::string(heading) + "</h2>"));
  }
  EXPECT_THAT(html, HasSubstr("Accuracy 50.00 %"));
  EXPECT_THAT(html, HasSubstr("<caption><span>Rows: the true class."));
  EXPECT_THAT(html, HasSubstr("<title id=\"roc-t\">ROC</title><desc id=\"roc-d\">"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("a&lt;b"));
  EXPECT_THAT(html, HasSubstr("<bdi>bee</bdi>, taken for <bdi>ant</bdi> (87.5 %)<br>"));
}

TEST(RunReportTest, EveryTagIsClosed) {
  std::vector<std::string> open;
  for (const std::string& tag : Tags(RenderReport(Example()))) {
    if (tag == "!DOCTYPE" || tag == "meta" || tag == "img" || tag == "br" || tag == "path" ||
        tag == "circle") {
      continue;
    }
    if (tag[0] != '/') {
      open.push_back(tag);
      continue;
    }
    ASSERT_FALSE(open.empty()) << tag;
    EXPECT_EQ(tag.substr(1), open.back());
    open.pop_back();
  }
  EXPECT_THAT(open, ElementsAre());
}

TEST(RunReportTest, HostileNamesAreShownAndDoNothing) {
  const std::string evil = "<script>alert('1')</script>\"><img src=x onerror=alert(2)>&\x1B[2J";
  RunReport report = Example();
  const size_t scripts = Tags(RenderReport(report)).size();
  report.name = report.config = report.versions = evil;
  report.data = {{evil, evil}};
  report.evaluation->network = report.evaluation->part = evil;
  report.evaluation->scored.class_names = {evil, evil + "2", evil + "3"};
  report.evaluation->worst[0].file = report.evaluation->worst[0].label = evil;
  report.evaluation->worst[0].taken_for = evil;
  report.training_images[0].file = report.training_images[0].label = evil;
  const std::string html = RenderReport(report);
  EXPECT_EQ(Tags(html).size(), scripts);  // not one tag more
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(html.find('\x1B'), std::string::npos);
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;1&#39;)"));
  const std::string bare = std::regex_replace(html, std::regex("\"[^\"]*\""), "");  // no values
  EXPECT_FALSE(std::regex_search(bare, std::regex("<[^>]*\\sonerror")));
}

TEST(RunReportTest, ReachesForNothingOutside) {
  const std::string html = RenderReport(Example());
  EXPECT_THAT(html, HasSubstr("content=\"default-src 'none'; img-src data:; style-src 'unsafe-"));
  EXPECT_THAT(html, Not(HasSubstr("http:")));
  EXPECT_THAT(html, Not(HasSubstr("https:")));
  EXPECT_THAT(html, Not(HasSubstr("url(")));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
}

TEST(RunReportTest, StaysSmall) {
  RunReport report = Example();
  constexpr int32_t kClasses = 1000;
  ScoredImages& scored = report.evaluation->scored;
  scored = {};
  for (int32_t k = 0; k < kClasses; ++k) {
    scored.class_names.push_back("a class with a long name, number " + std::to_string(k));
    scored.files.push_back(std::to_string(k));
    scored.labels.push_back(k);
    scored.predicted.push_back(k / 2);
    scored.losses.push_back(1);
    for (int32_t i = 0; i < kClasses; ++i) scored.probabilities.push_back(1.0 / kClasses);
  }
  report.training_images.assign(100, {.file = "f", .label = "c", .jpeg = std::string(50000, 'x')});
  const std::string html = RenderReport(report);
  EXPECT_LE(std::ssize(html), kMostReportBytes);
  EXPECT_THAT(html, HasSubstr("The 300 of 1000 classes with the lowest F1."));
  EXPECT_THAT(html, HasSubstr("images left out, for the size of this file."));
}

TEST(RunReportTest, ShowsGradCamBesideMistakesAndGuesses) {
  RunReport report = Example();
  EXPECT_THAT(RenderReport(report), Not(HasSubstr("Grad-CAM")));
  report.evaluation->feature_map = "layer<4>";
  report.evaluation->worst[0].overlay_jpeg = "z";
  report.evaluation->worst[0].overlay_text = "spoke for \"ant\"";
  const std::string html = RenderReport(report);
  EXPECT_THAT(html, HasSubstr("at layer layer&lt;4&gt;."));
  EXPECT_THAT(html, HasSubstr("<span class=\"bar\">"));
  EXPECT_THAT(html, HasSubstr("alt=\"1.jpg\" src=\"data:image/jpeg;base64,eA==\"><img width"));
  EXPECT_THAT(
      html,
      HasSubstr("alt=\"spoke for &quot;ant&quot;\" "
                "src=\"data:image/jpeg;base64,eg==\"></div><figcaption><bdi>bee</bdi>, taken"));
  const std::string training = html.substr(html.find("<h2>Training images</h2>"));
  EXPECT_THAT(training, Not(HasSubstr("Grad-CAM")));  // nothing is predicted there
}

TEST(RunReportTest, WithoutAnEvaluation) {
  RunReport report = Example();
  report.evaluation.reset();
  report.history = {};
  const std::string html = RenderReport(report);
  EXPECT_THAT(html, Not(HasSubstr("<h2>Evaluation</h2>")));
  EXPECT_THAT(html, Not(HasSubstr("<h2>Curves</h2>")));
  EXPECT_THAT(html, HasSubstr("<h2>Config</h2>"));
}

TEST(RunReportTest, AMissingClassHasNoCurve) {
  RunReport report = Example();
  ScoredImages& scored = report.evaluation->scored;
  scored.labels = {0, 0, 0, 0};  // neither bees nor cows: no curve is defined
  EXPECT_THAT(RenderReport(report), Not(HasSubstr("id=\"roc\"")));
  EXPECT_THAT(RenderReport(report), Not(HasSubstr("nan")));
}

TEST(ChartTest, TicksAreRound) {
  EXPECT_THAT(Ticks(0, 1, 6), ElementsAre(0, 0.2, testing::DoubleNear(0.4, 1e-12),
                                          testing::DoubleNear(0.6, 1e-12), 0.8, 1));
  EXPECT_THAT(Ticks(-3, 17, 5), ElementsAre(0, 5, 10, 15));
}

TEST(ChartTest, LeavesOutWhatIsNotFinite) {
  Chart chart{.id = "x", .title = "t", .description = "d", .x_label = "x", .y_label = "y"};
  chart.series = {{.name = "s", .points = {{0, 1}, {1, NAN}, {2, INFINITY}, {3, 1}}}};
  const std::string svg = RenderChart(chart);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(svg, HasSubstr("class=\"line c0\" d=\"M56.0 125.0L468.0 125.0\""));
  chart.series[0].points = {{0, 1e300}};
  EXPECT_THAT(RenderChart(chart), Not(HasSubstr("nan")));
  chart.series[0].points.clear();
  EXPECT_THAT(RenderChart(chart), Not(HasSubstr("nan")));
}

TEST(HtmlTest, Escape) {
  EXPECT_EQ(HtmlEscape("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
}

// RFC 4648, section 10.
TEST(Base64Test, Rfc4648) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xFF\xFE"), "//4=");
}

TEST(RunHistoryTest, MeansBetweenEvaluations) {
  const TempDir folder;
  std::ofstream(folder.File("m.jsonl"))
      << R"({"kind":"step","step":1,"epoch":0.5,"loss":4,"accuracy":0.2,"learning_rate":0.1})"
         "\n"
         R"({"kind":"step","step":2,"epoch":1,"loss":2,"accuracy":null,"learning_rate":0.3})"
         "\n"
         R"({"kind":"evaluation","step":2,"epoch":1,"loss":3,"accuracy":0.5,"learning_rate":null})"
         "\n"
         R"({"kind":"step","step":3,"epoch":1.5,"loss":1,"accuracy":0.4,"learning_rate":0.2})"
         "\n"
         R"({"kind":"evaluation","step":3,"epoch":1.5,"loss":2,"accuracy":0.6,"learning_rate":null})"
         "\n"
         R"({"kind":"step","step":4,"ep)";
  const RunHistory history = ReadRunHistory(folder.File("m.jsonl")).value();
  EXPECT_EQ(history.training.size(), 3U);
  const std::vector<HistoryPoint> means = TrainingBetween(history);
  ASSERT_EQ(means.size(), 2U);
  EXPECT_EQ(means[0].loss, 3);
  EXPECT_EQ(means[0].accuracy, 0.2);
  EXPECT_EQ(means[0].learning_rate, 0.2);
  EXPECT_EQ(means[1].loss, 1);
  const std::vector<HistoryPoint> two = Thin(history.training, 2);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].loss, 4);
  EXPECT_EQ(two[1].loss, 1.5);
  EXPECT_TRUE(ReadRunHistory(folder.File("none")).value().training.empty());
}

TEST(StoredEvaluationTest, IsThatOfOneNetwork) {
  const TempDir folder;
  ASSERT_TRUE(StoreEvaluation(folder.path(), {.network = "final.safetensors",
                                              .network_crc32c = "0123abcd",
                                              .part = "validation",
                                              .scored = FourImages(),
                                              .bad_images = 2,
                                              .images_per_s = 5})
                  .ok());
  const auto found = FindEvaluation(folder.path(), "0123abcd");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->scored.probabilities, FourImages().probabilities);
  EXPECT_EQ(found->bad_images, 2);
  EXPECT_EQ(found->part, "validation");
  EXPECT_FALSE(FindEvaluation(folder.path(), "0123abce").has_value());
  std::ofstream(folder.File("evaluation.csv"), std::ios::app) << "torn";
  EXPECT_FALSE(FindEvaluation(folder.path(), "0123abcd").has_value());
}

}  // namespace
}  // namespace ringtail
