#include "core/config/text_config.h"

#include <google/protobuf/message.h>

#include "core/config/config_source_impl.h"
#include "core/config/message_checks.h"
#include "core/config/text_parser.h"
#include "core/storage/file.h"
#include "core/text/utf8.h"
#include "fmt/format.h"

namespace ringtail {
namespace {

namespace pb = google::protobuf;

constexpr size_t kMaxFileBytes = size_t{1} << 20;
constexpr size_t kMaxElements = 100'000;  // fields and list elements; ten times the largest net's
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The offset of the first element beyond the limit; text.size() if there is none. Elements are
// counted by the characters that start them, before anything is allocated for them.
size_t FindElementBeyondLimit(std::string_view text) {
  size_t elements = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '#' || c == '"' || c == '\'') {
      i = EndOfQuoted(text, i);
      continue;
    }
    if ((c == ':' || c == '{' || c == '<' || c == ',') && ++elements > kMaxElements) return i;
    ++i;
  }
  return text.size();
}

Status CheckText(const SourceText& source) {
  const std::string_view text = source.text();
  if (text.size() > kMaxFileBytes) {
    return InvalidArgument(
        fmt::format("{}: {} bytes are too many for a config, which has at most {}",
                    source.file_name(), text.size(), kMaxFileBytes));
  }
  if (text.starts_with(kByteOrderMark)) {
    return source.Error(0, "the file starts with a byte order mark; save it as UTF-8 without one");
  }
  if (const size_t valid = ValidUtf8Prefix(text); valid < text.size()) {
    return source.Error(valid, "not valid UTF-8; save the file as UTF-8");
  }
  if (const size_t beyond = FindElementBeyondLimit(text); beyond < text.size()) {
    return source.Error(beyond, fmt::format("more than {} fields and list elements", kMaxElements));
  }
  return {};
}

}  // namespace

Status ParseTextConfig(std::string_view text, std::string_view file_name, pb::Message* config,
                       ConfigSource* source) {
  config->Clear();
  ConfigSource parsed;
  ConfigSource::Impl& impl = *parsed.impl_;
  impl.text = SourceText(std::string(file_name), std::string(text));
  impl.type = config->GetDescriptor();
  RT_RETURN_IF_ERROR(CheckText(impl.text));
  if (const auto failure = RunTextParser(impl.text.text(), config, &impl.locations)) {
    config->Clear();
    return impl.text.Error(failure->OffsetIn(impl.text), failure->sentence);
  }
  if (Status status = CheckStrings(*config, &parsed, ""); !status.ok()) {
    config->Clear();
    return status;
  }
  if (source != nullptr) *source = std::move(parsed);
  return {};
}

Status ReadTextConfig(const std::string& path, pb::Message* config, ConfigSource* source) {
  config->Clear();
  RT_ASSIGN_OR_RETURN(const std::string text, ReadFileText(path, kMaxFileBytes));
  return ParseTextConfig(text, path, config, source);
}

std::string PrintTextConfig(const pb::Message& config) {
  pb::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  RT_CHECK(printer.PrintToString(config, &text), "printing to memory cannot fail");
  return text;
}

}  // namespace ringtail
