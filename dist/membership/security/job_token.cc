#include "dist/membership/security/job_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "dist/membership/security/private_file.h"

namespace ringtail {
namespace {

constexpr size_t kMinTokenBytes = 16, kMaxTokenBytes = 1024;

// `where` it comes from; what it is must not be said.
StatusOr<std::string> CheckToken(std::string token, const std::string& where) {
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes) {
    return InvalidArgument(
        fmt::format("the job's token in {} has {} bytes and needs {} to {}: make one with "
                    "\"openssl rand -hex 16\"",
                    where, token.size(), kMinTokenBytes, kMaxTokenBytes));
  }
  if (!std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isgraph(c); })) {
    return InvalidArgument(
        fmt::format("the job's token in {} has a space, a line break or a "
                    "character that is not ASCII in it",
                    where));
  }
  return token;
}

StatusOr<std::string> TokenFromFile(const std::string& path, const std::string& where) {
  StatusOr<std::string> content = ReadPrivateFile(path);
  if (!content.ok()) return content.status().Annotate("reading the job's token (" + where + ")");
  return CheckToken(*std::move(content), path);
}

}  // namespace

StatusOr<std::string> ReadJobToken(
    const std::optional<std::string>& token_file,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  if (token_file.has_value()) return TokenFromFile(*token_file, "--token-file");
  if (auto token = environment("RINGTAIL_TOKEN")) {
    return CheckToken(*std::move(token), "RINGTAIL_TOKEN");
  }
  if (const auto path = environment("RINGTAIL_TOKEN_FILE")) {
    return TokenFromFile(*path, "RINGTAIL_TOKEN_FILE");
  }
  return std::string();
}

}  // namespace ringtail
