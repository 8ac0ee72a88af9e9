#include "apps/report/run_report.h"

#include <fmt/core.h>

#include <cmath>

#include "apps/report/chart.h"
#include "apps/report/evaluation_section.h"
#include "apps/report/html.h"
#include "apps/report/page_style.h"
#include "apps/report/thumbnails.h"

namespace ringtail {
namespace {

constexpr size_t kMostCurvePoints = 300, kMostTableRows = 200;

using PointValue = double HistoryPoint::*;

ChartSeries Curve(const std::string& name, const std::vector<HistoryPoint>& points,
                  PointValue value, bool markers) {
  ChartSeries series{.name = name, .points = {}, .markers = markers};
  for (const HistoryPoint& point : points) series.points.emplace_back(point.epoch, point.*value);
  return series;
}

std::string Cell(double value, double factor, int digits) {
  if (!std::isfinite(value)) return "<td>-</td>";
  return fmt::format("<td>{:.{}f}</td>", factor * value, digits);
}

std::string CurveTable(const RunHistory& history) {
  const std::vector<HistoryPoint> training = TrainingBetween(history);
  const size_t skip = history.evaluation.size() / kMostTableRows + 1;
  std::string rows;
  for (size_t i = (history.evaluation.size() - 1) % skip; i < history.evaluation.size();
       i += skip) {
    const HistoryPoint& evaluation = history.evaluation[i];
    rows += fmt::format("<tr><th scope=\"row\">{:.4g}</th><td>{}</td>", evaluation.epoch,
                        evaluation.step) +
            Cell(training[i].loss, 1, 4) + Cell(training[i].accuracy, 100, 2) +
            Cell(evaluation.loss, 1, 4) + Cell(evaluation.accuracy, 100, 2) +
            Cell(training[i].learning_rate, 1, 6) + "</tr>\n";
  }
  return "<details><summary>The numbers</summary>" +
         Scrollable(
             "numbers of the curves",
             "<table><caption><span>Each evaluation, and the means of training since the one "
             "before</span></caption><thead><tr><th scope=\"col\">epoch</th><th scope=\"col\">step"
             "</th><th scope=\"col\">training loss</th><th scope=\"col\">training accuracy, "
             "%</th><th scope=\"col\">validation loss</th><th scope=\"col\">validation "
             "accuracy, %</th><th scope=\"col\">learning rate</th></tr></thead>\n<tbody>" +
                 rows + "</tbody></table>") +
         "</details>\n";
}

std::string Curves(const RunHistory& history) {
  if (history.training.empty() && history.evaluation.empty()) return {};
  const std::vector<HistoryPoint> training = Thin(history.training, kMostCurvePoints);
  const std::vector<HistoryPoint> evaluation = Thin(history.evaluation, kMostCurvePoints);
  std::string html = "<section><h2>Curves</h2><div class=\"charts\">\n";
  const auto add = [&](const char* id, const char* title, const char* label, PointValue value,
                       bool validates) {
    Chart chart{
        .id = id,
        .title = title,
        .description = fmt::format("{} over epochs; the numbers are in the table below", title),
        .x_label = "epoch",
        .y_label = label,
        .series = {Curve("training (mean over steps)", training, value, false)}};
    if (validates) chart.series.push_back(Curve("validation", evaluation, value, true));
    html += RenderChart(chart);
  };
  add("loss", "Loss", "loss", &HistoryPoint::loss, true);
  add("accuracy", "Accuracy", "accuracy, fraction", &HistoryPoint::accuracy, true);
  add("rate", "Learning rate", "learning rate", &HistoryPoint::learning_rate, false);
  html += "</div>\n";
  if (!history.evaluation.empty()) html += CurveTable(history);
  return html + "</section>\n";
}

std::string Data(const RunReport& report) {
  if (report.data.empty()) return {};
  std::string html = "<section><h2>Data</h2><dl>\n";
  for (const auto& [name, value] : report.data) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", HtmlEscape(name), HtmlEscape(value));
  }
  return html + "</dl></section>\n";
}

std::string Title(const RunReport& report) {
  std::string html = fmt::format("<header><h1>Run {}</h1>\n", HtmlEscape(report.name));
  if (report.evaluation) html += EvaluationHeadline(*report.evaluation);
  return html + "</header>\n";
}

}  // namespace

std::string RenderReport(const RunReport& report) {
  const std::string head = fmt::format(
      R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Run {}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<style>{}</style></head>
<body>)",
      HtmlEscape(report.name), kPageStyle);
  const std::string before = head + Title(report) + "<main>\n" + Curves(report.history) +
                             (report.evaluation ? EvaluationSection(*report.evaluation) : "");
  const std::string after =
      Data(report) + fmt::format(
                         "<section><h2>Config</h2><pre tabindex=\"0\">{}</pre></section>\n"
                         "<section><h2>Versions</h2><p>{}</p></section>\n</main></body></html>\n",
                         HtmlEscape(report.config), HtmlEscape(report.versions));
  ImageBudget budget(kMostReportBytes - std::ssize(before) - std::ssize(after));
  std::string images;
  if (report.evaluation) {
    images += Gallery("Worst mistakes", "Largest loss first: wrong labels show up here.",
                      report.evaluation->worst, report.evaluation->feature_map, &budget);
    images += Gallery("Best guesses", "Smallest loss first.", report.evaluation->best,
                      report.evaluation->feature_map, &budget);
  }
  images += Gallery("Training images",
                    "As the network gets them in training: cropped, flipped and coloured by "
                    "data.augment.",
                    report.training_images, "", &budget);
  return before + images + after;
}

}  // namespace ringtail
