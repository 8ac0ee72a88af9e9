// libFuzzer: hostile host lists. Besides not crashing: few names come out, each of them is one, and
// written one after the other they read back the same.
//
//   build/fuzz/tests/dist_host_list_fuzz -rss_limit_mb=512 -timeout=1 tests/dist/membership/corpus/host_list_fuzz
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "dist/membership/identity/host_list.h"

namespace ringtail {
namespace {

void Try(std::string_view text) {
  const auto hosts = ExpandHostList(text);
  if (!hosts.ok()) {
    RT_CHECK(hosts.status().code() == StatusCode::kInvalidArgument, hosts.status().ToString());
    return;
  }
  RT_CHECK(!hosts->empty() && hosts->size() <= kMaxHosts, "no host, or too many");
  std::string joined;
  for (const std::string& host : *hosts) {
    RT_CHECK(IsHostName(host), host);
    if (joined.size() < kMaxHostListBytes / 2) joined += (joined.empty() ? "" : ",") + host;
  }
  const auto again = ExpandHostList(joined);
  RT_CHECK(again.ok(), again.status().ToString());
  for (size_t i = 0; i < again->size(); ++i) RT_CHECK((*again)[i] == (*hosts)[i], joined);
}

}  // namespace
}  // namespace ringtail

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ringtail::Try(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
