// A line chart as SVG, to stand inside an HTML page: readable in light and dark (colours come from
// the page's CSS classes c0 .. c5), without colours (each series has dashes of its own) and by
// screen readers (role="img" with title and description; put the numbers into a table beside it).
// Thread-safety: functions without state. Cost: 12 bytes per point.
#ifndef RINGTAIL_APPS_REPORT_CHART_H_
#define RINGTAIL_APPS_REPORT_CHART_H_

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace ringtail {

inline constexpr size_t kMostSeries = 6;

struct ChartSeries {
  std::string name;
  std::vector<std::pair<double, double>>
      points;            // ascending x; those that are not finite are left out
  bool markers = false;  // a dot at each point
};

struct Chart {
  std::string id;  // unique in the page; letters, digits and -
  std::string title, description, x_label, y_label;
  std::vector<ChartSeries> series;  // at most kMostSeries
  bool unit_square = false;         // both axes are 0 .. 1
  bool diagonal = false;            // a dotted line from corner to corner
};

// The chart with its legend: a <figure>.
std::string RenderChart(const Chart& chart);

// About `most` round numbers that span low .. high: 0 0.2 0.4.
std::vector<double> Ticks(double low, double high, int most);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_CHART_H_
