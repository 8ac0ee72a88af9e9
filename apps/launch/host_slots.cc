#include "apps/launch/host_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "core/text/counted.h"
#include "dist/membership/identity/host_list.h"
#include "dist/membership/identity/rank_environment.h"

namespace ringtail {
namespace {

std::optional<int> ParseSlots(std::string_view text) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && slots >= 1 && slots <= kMaxWorldSize ? std::optional(slots) : std::nullopt;
}

// The end of the first host in `text`: at a comma outside brackets.
size_t EndOfEntry(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']') --depth;
    if (text[i] == ',' && depth == 0) return i;
  }
  return text.size();
}

// "n[1-2]:4", "[fe80::1]:4", "node".
StatusOr<std::vector<HostSlots>> ParseEntry(std::string_view entry) {
  std::string_view names = entry;
  int slots = 1;
  const size_t colon = entry.rfind(':');
  const size_t bracket = entry.rfind(']');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    names = entry.substr(0, colon);
    const auto parsed = ParseSlots(entry.substr(colon + 1));
    if (!parsed) {
      return InvalidArgument(
          fmt::format("'{}' is not HOST:SLOTS with 1 to {} slots", entry, kMaxWorldSize));
    }
    slots = *parsed;
  }
  const bool ipv6 =
      names.starts_with('[') && names.ends_with(']') && names.find(':') != std::string_view::npos;
  if (ipv6) {
    const std::string_view address = names.substr(1, names.size() - 2);
    if (!IsHostName(address)) return InvalidArgument(fmt::format("'{}' is not a host", names));
    return std::vector<HostSlots>{{std::string(address), slots}};
  }
  RT_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, ExpandHostList(names));
  std::vector<HostSlots> hosts;
  hosts.reserve(expanded.size());
  for (const std::string& host : expanded) hosts.push_back({host, slots});
  return hosts;
}

Status CheckTwice(const std::vector<HostSlots>& hosts, const std::string& host) {
  const bool twice = std::any_of(hosts.begin(), hosts.end(),
                                 [&](const HostSlots& other) { return other.host == host; });
  return twice ? InvalidArgument(fmt::format(
                     "host '{}' is listed twice: write it once, with all its slots", host))
               : OkStatus();
}

Status Append(const std::vector<HostSlots>& more, std::vector<HostSlots>* hosts) {
  for (const HostSlots& one : more) {
    RT_RETURN_IF_ERROR(CheckTwice(*hosts, one.host));
    hosts->push_back(one);
  }
  return OkStatus();
}

// One line without its comment: "node1 slots=4", "node1:4" or nothing.
Status ParseLine(const std::string& line, std::vector<HostSlots>* hosts) {
  std::istringstream words(line);
  std::string host, slots, more;
  if (!(words >> host)) return OkStatus();
  RT_ASSIGN_OR_RETURN(std::vector<HostSlots> entry, ParseEntry(host));
  if (words >> slots) {
    const auto parsed = slots.starts_with("slots=") ? ParseSlots(slots.substr(6)) : std::nullopt;
    if (!parsed) {
      return InvalidArgument(
          fmt::format("'{}' is not slots=N with N from 1 to {}", slots, kMaxWorldSize));
    }
    for (HostSlots& one : entry) one.slots = *parsed;
  }
  if (words >> more) return InvalidArgument(fmt::format("'{}' is an extra word", more));
  return Append(entry, hosts);
}

}  // namespace

StatusOr<std::vector<HostSlots>> ParseHosts(const std::string& text) {
  std::vector<HostSlots> hosts;
  std::string_view left = text;
  while (true) {
    const size_t end = EndOfEntry(left);
    const auto entry = ParseEntry(left.substr(0, end));
    if (!entry.ok()) return entry.status().Annotate("--hosts");
    const Status appended = Append(*entry, &hosts);
    if (!appended.ok()) return appended.Annotate("--hosts");
    if (end == left.size()) return hosts;
    left.remove_prefix(end + 1);
  }
}

StatusOr<std::vector<HostSlots>> ParseHostfile(const std::string& name, std::string_view text) {
  std::vector<HostSlots> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Status parsed = ParseLine(line.substr(0, line.find('#')), &hosts);
    if (!parsed.ok()) return parsed.Annotate(fmt::format("{}:{}", name, number));
  }
  if (hosts.empty()) return InvalidArgument(fmt::format("{}: the file has no host", name));
  return hosts;
}

StatusOr<std::vector<HostSlots>> PlaceRanks(std::vector<HostSlots> hosts, int ranks) {
  int64_t slots = 0;
  for (const HostSlots& one : hosts) slots += one.slots;
  if (ranks > slots || slots > kMaxWorldSize) {
    return InvalidArgument(fmt::format("{} do not fit into the {} of {}",
                                       Counted(std::max<int64_t>(ranks, slots), "rank"),
                                       Counted(slots, "slot"), Counted(hosts.size(), "host")));
  }
  int left = ranks == 0 ? static_cast<int>(slots) : ranks;
  for (HostSlots& one : hosts) {
    one.slots = std::min(one.slots, left);
    left -= one.slots;
  }
  std::erase_if(hosts, [](const HostSlots& one) { return one.slots == 0; });
  return hosts;
}

}  // namespace ringtail
