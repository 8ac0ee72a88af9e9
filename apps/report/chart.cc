#include "apps/report/chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/report/html.h"
#include "core/check.h"

namespace ringtail {
namespace {

constexpr double kWidth = 480, kHeight = 280;  // of the SVG, in its own units
constexpr double kLeft = 56, kRight = 12, kTop = 10, kBottom = 40;
constexpr int kTicks = 6;

struct Axis {
  double low = 0, high = 1;
  double Fraction(double value) const { return (value - low) / (high - low); }
};

struct Frame {
  Axis x, y;
  double X(double value) const { return kLeft + x.Fraction(value) * (kWidth - kLeft - kRight); }
  double Y(double value) const {
    return kHeight - kBottom - y.Fraction(value) * (kHeight - kTop - kBottom);
  }
};

bool IsFinite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

// `margin`: the fraction of the range to be free above and below.
Axis Range(const Chart& chart, double std::pair<double, double>::*coordinate, double margin) {
  Axis axis{.low = std::numeric_limits<double>::infinity(),
            .high = -std::numeric_limits<double>::infinity()};
  for (const ChartSeries& series : chart.series) {
    for (const auto& point : series.points) {
      if (!IsFinite(point)) continue;
      axis.low = std::min(axis.low, point.*coordinate);
      axis.high = std::max(axis.high, point.*coordinate);
    }
  }
  if (!(axis.low <= axis.high)) return {};
  double free = margin * (axis.high - axis.low);
  if (axis.low == axis.high) free = std::max(0.5, 0.1 * std::abs(axis.low));
  return {.low = axis.low - free, .high = axis.high + free};
}

std::string Grid(const Frame& frame) {
  std::string svg;
  for (const double x : Ticks(frame.x.low, frame.x.high, kTicks)) {
    svg += fmt::format(
        R"(<path class="grid" d="M{0:.1f} {1:.1f}V{2:.1f}"/><text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4:.4g}</text>)",
        frame.X(x), kTop, kHeight - kBottom, kHeight - kBottom + 14, x);
  }
  for (const double y : Ticks(frame.y.low, frame.y.high, kTicks)) {
    svg += fmt::format(
        R"(<path class="grid" d="M{1:.1f} {0:.1f}H{2:.1f}"/><text x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5:.4g}</text>)",
        frame.Y(y), kLeft, kWidth - kRight, kLeft - 6, frame.Y(y) + 4, y);
  }
  return svg;
}

std::string Labels(const Chart& chart) {
  return fmt::format(
      R"svg(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text><text transform="translate(12 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg",
      (kLeft + kWidth - kRight) / 2, kHeight - 6, HtmlEscape(chart.x_label),
      (kTop + kHeight - kBottom) / 2, HtmlEscape(chart.y_label));
}

std::string Line(const ChartSeries& series, size_t number, const Frame& frame) {
  std::string path, dots;
  for (const auto& point : series.points) {
    if (!IsFinite(point)) continue;
    const double x = frame.X(point.first), y = frame.Y(point.second);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', x, y);
    if (series.markers) {
      dots += fmt::format(R"(<circle class="c{}" cx="{:.1f}" cy="{:.1f}" r="2.5"/>)", number, x, y);
    }
  }
  return fmt::format(R"(<path class="line c{}" d="{}"/>)", number, path) + dots;
}

std::string Legend(const Chart& chart) {
  if (chart.series.size() < 2) return {};
  std::string html = R"(<ul class="legend">)";
  for (size_t i = 0; i < chart.series.size(); ++i) {
    html += fmt::format(
        R"(<li><svg viewBox="0 0 30 8" width="30" height="8" aria-hidden="true"><path class="line c{}" d="M0 4H30"/></svg> {}</li>)",
        i, HtmlName(chart.series[i].name));
  }
  return html + "</ul>";
}

}  // namespace

std::vector<double> Ticks(double low, double high, int most) {
  const double rough = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  for (auto i = static_cast<int64_t>(std::ceil(low / step - 1e-9));
       static_cast<double>(i) * step <= high + 1e-9 * step; ++i) {
    ticks.push_back(static_cast<double>(i) * step);
  }
  return ticks;
}

std::string RenderChart(const Chart& chart) {
  RT_CHECK(chart.series.size() <= kMostSeries, "as many series as there are colours");
  Frame frame;
  if (!chart.unit_square) {
    frame.x = Range(chart, &std::pair<double, double>::first, 0);
    frame.y = Range(chart, &std::pair<double, double>::second, 0.04);
  }
  std::string svg = fmt::format(
      R"(<figure class="chart"><svg viewBox="0 0 {0} {1}" role="img" aria-labelledby="{2}-t {2}-d"><title id="{2}-t">{3}</title><desc id="{2}-d">{4}</desc>)",
      kWidth, kHeight, chart.id, HtmlEscape(chart.title), HtmlEscape(chart.description));
  svg += Grid(frame) + Labels(chart);
  if (chart.diagonal) {
    svg += fmt::format(R"(<path class="diagonal" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>)",
                       frame.X(frame.x.low), frame.Y(frame.y.low), frame.X(frame.x.high),
                       frame.Y(frame.y.high));
  }
  for (size_t i = 0; i < chart.series.size(); ++i) svg += Line(chart.series[i], i, frame);
  return svg + fmt::format("</svg><figcaption>{}{}</figcaption></figure>\n",
                           HtmlEscape(chart.title), Legend(chart));
}

}  // namespace ringtail
