#include "dist/membership/identity/environment_numbers.h"

#include <fmt/format.h>

#include <algorithm>

#include "dist/membership/identity/host_list.h"

namespace ringtail {
namespace {

constexpr size_t kMaxNumberDigits = 18;
constexpr int64_t kMaxPort = 65535;

Status NoNumber(const std::string& name, const std::string& value, int64_t least, int64_t most) {
  return InvalidArgument(
      fmt::format("{}={} is not a number from {} to {}", name, value, least, most));
}

// Kubernetes gives every container the addresses of the services it knows, as MASTER_PORT here.
bool IsServiceVariable(const std::string& value) {
  return value.starts_with("tcp://") || value.starts_with("udp://") || value.starts_with("sctp://");
}

StatusOr<MasterAddress> ReadMasterVariables(const Environment& environment) {
  MasterAddress master;
  if (const auto host = ReadText(environment, "MASTER_ADDR")) {
    if (!IsHostName(*host)) {
      return InvalidArgument(
          fmt::format("MASTER_ADDR={} is not the name or address of a host", *host));
    }
    master.host = *host;
  }
  const auto text = ReadText(environment, "MASTER_PORT");
  if (text && IsServiceVariable(*text)) return master;
  RT_ASSIGN_OR_RETURN(const auto port, ReadNumber(environment, "MASTER_PORT", 1, kMaxPort));
  master.port = static_cast<int>(port.value_or(0));
  return master;
}

}  // namespace

std::optional<std::string> ReadText(const Environment& environment, const std::string& name) {
  std::optional<std::string> text = environment(name);
  return text && text->empty() ? std::nullopt : text;
}

std::optional<int64_t> ParseDigits(std::string_view text) {
  if (text.empty() || text.size() > kMaxNumberDigits) return std::nullopt;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

StatusOr<std::optional<int64_t>> ReadNumber(const Environment& environment, const std::string& name,
                                            int64_t least, int64_t most) {
  const auto text = ReadText(environment, name);
  if (!text) return std::optional<int64_t>();
  const auto value = ParseDigits(*text);
  if (!value || *value < least || *value > most) return NoNumber(name, *text, least, most);
  return value;
}

StatusOr<MasterAddress> ParseMaster(const std::string& name, const std::string& text) {
  std::string host = text, port;
  const size_t colon = text.rfind(':');
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    host = end == std::string::npos ? "" : text.substr(1, end - 1);
    if (end != std::string::npos && end + 1 < text.size()) {
      port = text[end + 1] == ':' ? text.substr(end + 2) : "?";
      if (port.empty()) port = "?";
    }
  } else if (std::count(text.begin(), text.end(), ':') == 1) {  // more: an IPv6 address
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.empty()) port = "?";
  }
  const auto number = port.empty() ? std::optional<int64_t>(0) : ParseDigits(port);
  if (!IsHostName(host) || !number || *number > kMaxPort || (!port.empty() && *number == 0)) {
    return InvalidArgument(
        fmt::format("{}={} is not HOST or HOST:PORT with a port from 1 to 65535", name, text));
  }
  return MasterAddress{host, static_cast<int>(*number)};
}

StatusOr<MasterAddress> ReadMaster(const RankFlags& flags, const Environment& environment) {
  if (flags.master) return ParseMaster("--master", *flags.master);
  if (const auto text = ReadText(environment, "RINGTAIL_MASTER")) {
    return ParseMaster("RINGTAIL_MASTER", *text);
  }
  return ReadMasterVariables(environment);
}

}  // namespace ringtail
