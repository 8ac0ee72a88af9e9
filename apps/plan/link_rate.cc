#include "apps/plan/link_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

#include "dist/planner/facts_file.h"

namespace ringtail {
namespace {

constexpr double kLeastBits = 1e3, kMostBits = 1e13;

// Bits of a unit; 0 if it is none.
double UnitBits(std::string_view text) {
  std::string unit;
  for (const char c : text) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (unit.ends_with("/s")) unit.resize(unit.size() - 2);
  if (unit == "kbit") return 1e3;
  if (unit == "mbit") return 1e6;
  return unit == "gbit" ? 1e9 : 0;
}

}  // namespace

StatusOr<double> ParseBitRate(std::string_view text) {
  double number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  const double unit = error == std::errc() ? UnitBits({end, last}) : 0;
  const double bits = number * unit;
  if (unit == 0 || !std::isfinite(bits) || bits < kLeastBits || bits > kMostBits) {
    return InvalidArgument(fmt::format(
        "\"{}\" is no rate of a link from 1kbit to 10000gbit; write it like 1gbit or 100mbit",
        text));
  }
  return bits;
}

StatusOr<std::pair<int, int>> ParseHosts(std::string_view text) {
  const size_t dots = text.find("..");
  const auto parse = [](std::string_view number) {
    int value = 0;
    const char* const last = number.data() + number.size();
    const auto [end, error] = std::from_chars(number.data(), last, value);
    return error == std::errc() && end == last ? value : 0;
  };
  const int least = parse(text.substr(0, dots));
  const int most = dots == std::string_view::npos ? least : parse(text.substr(dots + 2));
  if (least < 1 || most < least || most > kMostPlannedHosts) {
    return InvalidArgument(
        fmt::format("\"{}\" is no number of hosts from 1 to {}; write it like 8 or 1..32", text,
                    kMostPlannedHosts));
  }
  return std::pair(least, most);
}

}  // namespace ringtail
