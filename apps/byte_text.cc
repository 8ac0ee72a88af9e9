#include "apps/byte_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace ringtail {
namespace {

struct Unit {
  std::string_view name;
  int64_t bytes;
};

constexpr int64_t kKibi = 1024, kKilo = 1000;
// The largest of each kind first.
constexpr Unit kUnits[] = {
    {"GiB", kKibi* kKibi* kKibi},
    {"MiB", kKibi* kKibi},
    {"KiB", kKibi},
    {"GB", kKilo* kKilo* kKilo},
    {"MB", kKilo* kKilo},
    {"kB", kKilo},
    {"KB", kKilo},
    {"B", 1},
};
constexpr int64_t kMostBytes = kKibi * kKibi * kKibi * kKibi;
constexpr int64_t kFloatBytes = sizeof(float);

const Unit* FindUnit(std::string_view name) {
  if (name.empty()) name = "B";
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

StatusOr<int64_t> ParseBytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const Unit* unit = error == std::errc() ? FindUnit({end, text.data() + text.size()}) : nullptr;
  if (unit == nullptr || !std::isfinite(number)) {
    return InvalidArgument(
        fmt::format("\"{}\" is no number of bytes; write it like 4096, 1KiB, 25MB or 1.2GB", text));
  }
  const double bytes = number * static_cast<double>(unit->bytes);
  if (bytes < kFloatBytes || bytes > static_cast<double>(kMostBytes)) {
    return InvalidArgument(
        fmt::format("\"{}\" is outside of what can be measured, 4 bytes to 1024 GiB", text));
  }
  const auto floats = static_cast<int64_t>(std::ceil(bytes / kFloatBytes));
  return floats * kFloatBytes;
}

std::string FormatBytes(int64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes < unit.bytes || unit.bytes == 1) continue;
    std::string number =
        fmt::format("{:.3g}", static_cast<double>(bytes) / static_cast<double>(unit.bytes));
    std::string text = number + std::string(unit.name);
    const auto read_again = ParseBytes(text);
    if (read_again.ok() && *read_again == bytes && number.find('e') == std::string::npos) {
      return number + " " + std::string(unit.name);
    }
  }
  return fmt::format("{} B", bytes);
}

}  // namespace ringtail
