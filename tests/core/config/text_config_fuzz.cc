// libFuzzer: hostile configs and overrides. The first line is an override, the rest a config,
// parsed as a network and as a run. Must not crash; an error is one message that names the file,
// and a parsed config survives printing and parsing.
//
//   build/fuzz/tests/core_text_config_fuzz -rss_limit_mb=512 -timeout=1
//       -dict=tests/core/config/text_config_fuzz.dict tests/core/config/corpus/text_config_fuzz
#include <cstdint>
#include <string_view>

#include "apps/run.pb.h"
#include "core/check.h"
#include "core/config/config_override.h"
#include "core/config/message_checks.h"
#include "core/config/text_config.h"

namespace ringtail {
namespace {

constexpr char kFile[] = "fuzz.textproto";

void CheckError(const Status& status) {
  RT_CHECK(status.code() == StatusCode::kInvalidArgument, status.ToString());
  RT_CHECK(status.message().starts_with(kFile), status.ToString());
}

// Configs are equal if they print the same (bytes would distinguish NaNs).
void CheckReadsBack(const google::protobuf::Message& config, google::protobuf::Message* again) {
  const std::string text = PrintTextConfig(config);
  const Status status = ParseTextConfig(text, kFile, again, nullptr);
  RT_CHECK(status.ok(), status.ToString());
  RT_CHECK(PrintTextConfig(*again) == text, text);
}

template <typename Config>
void Try(std::string_view override, std::string_view text) {
  Config config, again;
  ConfigSource source;
  const Status status = ParseTextConfig(text, kFile, &config, &source);
  if (!status.ok()) return CheckError(status);
  CheckReadsBack(config, &again);
  CheckError(source.Error(override, "message"));
  if (const Status finite = CheckFinite(config, &source, ""); !finite.ok()) CheckError(finite);

  const std::string before = PrintTextConfig(config);
  if (ApplyOverride(override, &config, &source).ok()) {
    CheckReadsBack(config, &again);
    (void)source.Error(override.substr(0, override.find('=')), "message");
  } else {
    RT_CHECK(PrintTextConfig(config) == before, "a failed override left a trace");
  }
}

}  // namespace
}  // namespace ringtail

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line_end = std::min(input.find('\n'), input.size());
  const std::string_view override = input.substr(0, line_end);
  const std::string_view text = input.substr(std::min(line_end + 1, input.size()));
  ringtail::Try<ringtail::NetConfig>(override, text);
  ringtail::Try<ringtail::RunConfig>(override, text);
  return 0;
}
