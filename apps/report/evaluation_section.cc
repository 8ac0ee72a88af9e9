#include "apps/report/evaluation_section.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/report/chart.h"
#include "apps/report/html.h"
#include "apps/report/thumbnails.h"
#include "core/text/counted.h"

namespace ringtail {
namespace {

constexpr size_t kMostRankingPoints = 200;

// At most `most` classes, in their order: those with the lowest F1.
std::vector<int64_t> HardestClasses(const ClassScores& scores, size_t most) {
  std::vector<int64_t> order(scores.classes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores.classes[a].f1 < scores.classes[b].f1;
  });
  order.resize(std::min(order.size(), most));
  std::sort(order.begin(), order.end());
  return order;
}

std::string LeftOut(size_t shown, size_t all) {
  if (shown == all) return {};
  return fmt::format(" The {} of {} classes with the lowest F1.", shown, all);
}

// The width of a name's text up to a limit, and only beyond that in lines: a table that is too wide
// scrolls, instead of breaking names into letters.
std::string CellName(const std::string& name) {
  return "<span class=\"name\">" + HtmlName(name) + "</span>";
}

std::string ClassRow(const std::string& name, const ClassScore& score) {
  return fmt::format(
      "<tr><th "
      "scope=\"row\">{}</th><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{}</td></tr>\n",
      CellName(name), score.precision, score.recall, score.f1, score.support);
}

std::string ClassTable(const EvaluationSummary& summary, const std::vector<std::string>& names) {
  const std::vector<int64_t> shown = HardestClasses(summary.scores, kMostClassRows);
  std::string rows;
  for (const int64_t k : shown) rows += ClassRow(names[k], summary.scores.classes[k]);
  rows += ClassRow("mean of the classes (macro avg)", summary.scores.macro) +
          ClassRow("mean weighted by images (weighted avg)", summary.scores.weighted);
  return "<h3>Classes</h3>" +
         Scrollable(
             "classes",
             "<table><caption><span>Precision: how many of those taken for the class are of it. "
             "Recall: how many of the class are found. F1: their harmonic mean." +
                 LeftOut(shown.size(), names.size()) +
                 "</span></caption><thead><tr><th scope=\"col\">class</th><th scope=\"col\">"
                 "precision</th><th scope=\"col\">recall</th><th scope=\"col\">F1</th>"
                 "<th scope=\"col\">images</th></tr></thead>\n<tbody>" +
                 rows + "</tbody></table>");
}

std::string MatrixRow(const EvaluationSummary& summary, const std::vector<std::string>& names,
                      const std::vector<int64_t>& shown, int64_t label) {
  std::string row = fmt::format("<tr><th scope=\"row\">{}</th>", CellName(names[label]));
  const auto support = static_cast<double>(std::max<int64_t>(summary.matrix.support(label), 1));
  for (const int64_t predicted : shown) {
    const int64_t count = summary.matrix.at(label, predicted);
    constexpr double kDarkest = 0.55;  // text stays readable on it
    row += fmt::format("<td class=\"heat\" style=\"--a:{:.2f}\">{}</td>",
                       kDarkest * static_cast<double>(count) / support, count);
  }
  return row + "</tr>\n";
}

std::string Matrix(const EvaluationSummary& summary, const std::vector<std::string>& names) {
  const std::vector<int64_t> shown = HardestClasses(summary.scores, kMostMatrixClasses);
  std::string heading = "<tr><th scope=\"col\">true class</th>", rows;
  for (const int64_t k : shown) {
    heading += fmt::format("<th scope=\"col\">{}</th>", CellName(names[k]));
    rows += MatrixRow(summary, names, shown, k);
  }
  return "<h3>Confusion matrix</h3>" +
         Scrollable("confusion matrix",
                    "<table><caption><span>Rows: the true class. Columns: what the network says. "
                    "Numbers: images; the darker, the larger the share of the row." +
                        LeftOut(shown.size(), names.size()) + "</span></caption><thead>" + heading +
                        "</tr></thead>\n<tbody>" + rows + "</tbody></table>");
}

std::string ConfusedList(const EvaluationSummary& summary, const std::vector<std::string>& names) {
  if (summary.most_confused.empty()) return "<p>No class is taken for another.</p>\n";
  std::string html = "<h3>Most confused</h3><ol>\n";
  for (const Confusion& pair : summary.most_confused) {
    html += fmt::format("<li>{} taken for {}: {}</li>\n", HtmlName(names[pair.label]),
                        HtmlName(names[pair.predicted]), Counted(pair.count, "image"));
  }
  return html + "</ol>\n";
}

// The classes whose ROC curves are drawn: the second of two, else those that are ranked worst.
std::vector<int64_t> RankedClasses(const ScoredImages& scored, const ClassScores& scores) {
  if (scored.classes() == 2) return {1};
  return HardestClasses(scores, kMostSeries);
}

ChartSeries RocSeries(const std::string& name, const Ranking& ranking) {
  ChartSeries series{.name = name, .points = {{0, 0}}};
  const size_t step = ranking.points.size() / kMostRankingPoints + 1;
  for (size_t i = 0; i < ranking.points.size(); ++i) {
    if (i % step != 0 && i + 1 != ranking.points.size()) continue;
    const RankingPoint& point = ranking.points[i];
    series.points.emplace_back(
        static_cast<double>(point.false_positives) / static_cast<double>(ranking.negatives),
        static_cast<double>(point.true_positives) / static_cast<double>(ranking.positives));
  }
  return series;
}

ChartSeries PrecisionSeries(const std::string& name, const Ranking& ranking) {
  ChartSeries series{.name = name};
  const size_t step = ranking.points.size() / kMostRankingPoints + 1;
  for (size_t i = 0; i < ranking.points.size(); ++i) {
    if (i % step != 0 && i + 1 != ranking.points.size()) continue;
    const RankingPoint& point = ranking.points[i];
    const auto taken = static_cast<double>(point.true_positives + point.false_positives);
    series.points.emplace_back(
        static_cast<double>(point.true_positives) / static_cast<double>(ranking.positives),
        static_cast<double>(point.true_positives) / taken);
  }
  return series;
}

std::string RankingCharts(const ScoredImages& scored, const EvaluationSummary& summary,
                          std::string* table) {
  Chart roc{.id = "roc",
            .title = "ROC",
            .description =
                "Of each class against the rest: how many of the class are found, over "
                "how many of the others are taken for it, at every threshold; the areas "
                "are in the table below",
            .x_label = "false positive rate",
            .y_label = "true positive rate (recall)",
            .unit_square = true,
            .diagonal = true};
  Chart precision{.id = "precision",
                  .title = "Precision and recall",
                  .description =
                      "Of each class against the rest: precision over recall at every "
                      "threshold; the average precisions are in the table below",
                  .x_label = "recall",
                  .y_label = "precision",
                  .unit_square = true};
  std::string rows;
  for (const int64_t k : RankedClasses(scored, summary.scores)) {
    const Ranking ranking = RankClass(scored, k);
    if (ranking.positives == 0 || ranking.negatives == 0) continue;
    roc.series.push_back(RocSeries(scored.class_names[k], ranking));
    precision.series.push_back(PrecisionSeries(scored.class_names[k], ranking));
    rows +=
        fmt::format("<tr><th scope=\"row\">{}</th><td>{:.4f}</td><td>{:.4f}</td></tr>\n",
                    CellName(scored.class_names[k]), ranking.RocAuc(), ranking.AveragePrecision());
  }
  if (rows.empty()) return {};
  *table +=
      "<table><caption><span>Area under the ROC curve and average precision of the classes in the "
      "charts</span></caption><thead><tr><th scope=\"col\">class</th><th scope=\"col\">ROC AUC</th>"
      "<th scope=\"col\">average precision</th></tr></thead>\n<tbody>" +
      rows + "</tbody></table>";
  return RenderChart(roc) + RenderChart(precision);
}

std::string ImageTag(const std::string& jpeg, const std::string& text) {
  return fmt::format(
      "<img width=\"128\" height=\"128\" alt=\"{}\" src=\"data:image/jpeg;base64,{}\">",
      HtmlEscape(text), Base64(jpeg));
}

// "cat, taken for dog (98.0 %)"
std::string Caption(const ReportImage& image) {
  std::string html = HtmlName(image.label);
  if (!image.taken_for.empty()) html += ", taken for " + HtmlName(image.taken_for);
  if (image.confidence >= 0) html += fmt::format(" ({:.1f} %)", 100 * image.confidence);
  return html;
}

std::string HeatLegend(const std::string& layer) {
  return fmt::format(
      "<p>On the right Grad-CAM: what in the image spoke for the class that the network took it "
      "for, at layer {}. <span class=\"scale\">nothing <span class=\"bar\"></span> "
      "most</span></p>\n",
      HtmlEscape(layer));
}

std::string CalibrationChart(const Calibration& calibration, std::string* table) {
  ChartSeries series{.name = "accuracy", .points = {}, .markers = true};
  std::string rows;
  for (size_t i = 0; i < calibration.bins.size(); ++i) {
    const CalibrationBin& bin = calibration.bins[i];
    if (bin.images == 0) continue;
    series.points.emplace_back(bin.confidence, bin.accuracy);
    rows += fmt::format("<tr><th scope=\"row\">{:.3f}</th><td>{:.3f}</td><td>{}</td></tr>\n",
                        bin.confidence, bin.accuracy, bin.images);
  }
  *table +=
      "<table><caption><span>Reliability: images in bins of confidence</span></caption><thead><tr>"
      "<th scope=\"col\">mean confidence</th><th scope=\"col\">accuracy</th>"
      "<th scope=\"col\">images</th></tr></thead>\n<tbody>" +
      rows + "</tbody></table>";
  return RenderChart({.id = "reliability",
                      .title = fmt::format("Reliability (expected calibration error {:.2f} %)",
                                           100 * calibration.expected_error),
                      .description =
                          "Accuracy over confidence: on the diagonal the network is right "
                          "as often as it says; below it, it is too sure of itself; the "
                          "numbers are in the table below",
                      .x_label = "confidence (probability of the predicted class)",
                      .y_label = "accuracy",
                      .series = {series},
                      .unit_square = true,
                      .diagonal = true});
}

}  // namespace

std::string Scrollable(const std::string& name, const std::string& html) {
  return fmt::format(
      "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">{}</div>\n",
      HtmlEscape(name), html);
}

std::string EvaluationHeadline(const ReportEvaluation& evaluation) {
  const EvaluationSummary summary = Summarize(evaluation.scored);
  std::string html = fmt::format(
      "<p><strong>Accuracy {:.2f} %</strong> of {} ({}; 95 % interval {:.2f} to {:.2f} %), loss "
      "{:.4f}; network {}",
      100 * summary.accuracy, Counted(summary.images, "image"), HtmlEscape(evaluation.part),
      100 * summary.interval.low, 100 * summary.interval.high, summary.loss,
      HtmlEscape(evaluation.network));
  if (summary.top_5_accuracy) {
    html += fmt::format("; top-5 accuracy {:.2f} %", 100 * *summary.top_5_accuracy);
  }
  if (evaluation.bad_images > 0) {
    html += fmt::format("; {} could not be read", Counted(evaluation.bad_images, "image"));
  }
  return html + ".</p>\n";
}

std::string EvaluationSection(const ReportEvaluation& evaluation) {
  const ScoredImages& scored = evaluation.scored;
  const EvaluationSummary summary = Summarize(scored);
  std::string tables;
  const std::string charts =
      RankingCharts(scored, summary, &tables) + CalibrationChart(summary.calibration, &tables);
  return "<section><h2>Evaluation</h2>\n" + ClassTable(summary, scored.class_names) +
         Matrix(summary, scored.class_names) + ConfusedList(summary, scored.class_names) +
         "<h3>Thresholds and confidence</h3><div class=\"charts\">\n" + charts +
         "</div>\n<details><summary>The numbers</summary>" +
         Scrollable("numbers of the charts", tables) + "</details></section>\n";
}

std::string Gallery(const std::string& title, const std::string& explanation,
                    const std::vector<ReportImage>& images, const std::string& feature_map,
                    ImageBudget* budget) {
  if (images.empty()) return {};
  const bool pairs = !feature_map.empty();
  std::string html = fmt::format("<section><h2>{}</h2><p>{}</p>{}<ul class=\"gallery{}\">\n",
                                 HtmlEscape(title), HtmlEscape(explanation),
                                 pairs ? HeatLegend(feature_map) : "", pairs ? " pairs" : "");
  int64_t left_out = 0;
  for (const ReportImage& image : images) {
    const std::string entry = fmt::format(
        "<li><figure><div "
        "class=\"images\">{}{}</div><figcaption>{}<br>{}</figcaption></figure></li>\n",
        image.jpeg.empty() ? "(no image)" : ImageTag(image.jpeg, image.file),
        image.overlay_jpeg.empty() ? "" : ImageTag(image.overlay_jpeg, image.overlay_text),
        Caption(image), HtmlName(image.file));
    if (budget->Take(std::ssize(entry))) {
      html += entry;
    } else {
      ++left_out;
    }
  }
  html += "</ul>";
  if (left_out > 0) {
    html +=
        fmt::format("<p>{} left out, for the size of this file.</p>", Counted(left_out, "image"));
  }
  return html + "</section>\n";
}

}  // namespace ringtail
