#include "dist/membership/identity/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace ringtail {
namespace {

constexpr size_t kMaxDigits = 9;   // so that every number fits into 32 bits
constexpr size_t kMaxPieces = 16;  // names and brackets in an entry: each copies all of its hosts
constexpr size_t kShownBytes = 80;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsNameByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
         c == '.';
}

// Reads the text from left to right; each entry between commas is a product of its pieces.
class HostListParser {
 public:
  explicit HostListParser(std::string_view text) : text_(text) {}

  StatusOr<std::vector<std::string>> Parse() {
    std::vector<std::string> hosts;
    while (true) {
      RT_ASSIGN_OR_RETURN(const std::vector<std::string> entry, ParseEntry());
      if (hosts.size() + entry.size() > kMaxHosts) return TooMany();
      hosts.insert(hosts.end(), entry.begin(), entry.end());
      if (place_ == text_.size()) return hosts;
      if (!Take(',')) return Error("expected ',' between two hosts");
    }
  }

 private:
  Status Error(std::string_view what) const {
    const std::string_view shown = text_.substr(0, kShownBytes);
    return InvalidArgument(fmt::format("{} at byte {} of the host list '{}{}'", what, place_ + 1,
                                       shown, shown.size() < text_.size() ? "..." : ""));
  }
  Status TooMany() const { return Error(fmt::format("more than {} hosts", kMaxHosts)); }

  bool Take(char c) {
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }

  // "r[1-2]c[1-2]": names and brackets in turn.
  StatusOr<std::vector<std::string>> ParseEntry() {
    std::vector<std::string> hosts{""};
    const size_t begin = place_;
    for (size_t pieces = 0; place_ < text_.size() && text_[place_] != ','; ++pieces) {
      if (pieces == kMaxPieces) return Error(fmt::format("more than {} pieces", kMaxPieces));
      std::vector<std::string> endings;
      if (Take('[')) {
        RT_ASSIGN_OR_RETURN(endings, ParseBracket());
      } else {
        RT_ASSIGN_OR_RETURN(const std::string name, ParseName());
        endings.push_back(name);
      }
      RT_ASSIGN_OR_RETURN(hosts, Product(hosts, endings));
    }
    if (place_ == begin) return Error("a host without a name");
    if (hosts.front().front() == '-') return Error("a host whose name begins with '-'");
    return hosts;
  }

  StatusOr<std::vector<std::string>> Product(const std::vector<std::string>& beginnings,
                                             const std::vector<std::string>& endings) const {
    if (beginnings.size() * endings.size() > kMaxHosts) return TooMany();
    std::vector<std::string> hosts;
    hosts.reserve(beginnings.size() * endings.size());
    for (const std::string& beginning : beginnings) {
      for (const std::string& ending : endings) {
        if (beginning.size() + ending.size() > kMaxHostNameBytes) {
          return Error(fmt::format("a name of more than {} bytes", kMaxHostNameBytes));
        }
        hosts.push_back(beginning + ending);
      }
    }
    return hosts;
  }

  StatusOr<std::string> ParseName() {
    const size_t begin = place_;
    while (place_ < text_.size() && IsNameByte(text_[place_])) ++place_;
    if (place_ == begin) return Error("a character that no host name has");
    if (place_ - begin > kMaxHostNameBytes) {
      return Error(fmt::format("a name of more than {} bytes", kMaxHostNameBytes));
    }
    return std::string(text_.substr(begin, place_ - begin));
  }

  struct Number {
    uint32_t value;
    size_t digits;
  };

  StatusOr<Number> ParseNumber() {
    const size_t begin = place_;
    while (place_ < text_.size() && IsDigit(text_[place_])) ++place_;
    const size_t digits = place_ - begin;
    if (digits == 0 || digits > kMaxDigits) {
      return Error(fmt::format("expected a number of 1 to {} digits", kMaxDigits));
    }
    Number number{0, digits};
    std::from_chars(text_.data() + begin, text_.data() + place_, number.value);
    return number;
  }

  // What stands behind '[', up to and with ']': "1-3,07-08".
  StatusOr<std::vector<std::string>> ParseBracket() {
    std::vector<std::string> numbers;
    do {
      RT_ASSIGN_OR_RETURN(const Number first, ParseNumber());
      Number last = first;
      if (Take('-')) {
        RT_ASSIGN_OR_RETURN(last, ParseNumber());
      }
      if (last.value < first.value) return Error("a range that runs backwards");
      if (numbers.size() + (last.value - first.value) >= kMaxHosts) return TooMany();
      for (uint32_t value = first.value; value <= last.value; ++value) {
        numbers.push_back(fmt::format("{:0{}}", value, first.digits));
      }
    } while (Take(','));
    if (!Take(']')) return Error("expected ']'");
    return numbers;
  }

  const std::string_view text_;
  size_t place_ = 0;
};

}  // namespace

StatusOr<std::vector<std::string>> ExpandHostList(std::string_view text) {
  if (text.size() > kMaxHostListBytes) {
    return InvalidArgument(
        fmt::format("a host list of {} bytes; {} is the most", text.size(), kMaxHostListBytes));
  }
  return HostListParser(text).Parse();
}

bool IsHostName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxHostNameBytes && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsNameByte(c) || c == ':'; });
}

}  // namespace ringtail
