#include "apps/launch/job.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "apps/launch/frames.h"

namespace ringtail {
namespace {

// What our own variables would have to compete with.
constexpr std::array<std::string_view, 8> kOtherIdentities = {
    "RINGTAIL_RANK",   "RINGTAIL_WORLD_SIZE", "RINGTAIL_LOCAL_RANK", "RINGTAIL_LOCAL_WORLD_SIZE",
    "RINGTAIL_MASTER", "RINGTAIL_TOKEN_FILE", "RINGTAIL_TOKEN",      "RANK"};

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

bool HasVariable(const std::vector<std::string>& environment, std::string_view name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const std::string& variable) { return NameOf(variable) == name; });
}

constexpr size_t kFixedTexts = 9;  // before the environment

}  // namespace

std::string EncodeJob(const Job& job) {
  std::vector<std::string> texts = {std::to_string(job.first_rank),
                                    std::to_string(job.local_world),
                                    std::to_string(job.world),
                                    std::to_string(job.master_port),
                                    std::to_string(job.bind),
                                    std::to_string(job.environment.size()),
                                    job.master_address,
                                    job.token,
                                    job.folder,
                                    std::to_string(job.remote)};
  texts.insert(texts.end(), job.environment.begin(), job.environment.end());
  texts.insert(texts.end(), job.program.begin(), job.program.end());
  return JoinTexts(texts);
}

StatusOr<Job> DecodeJob(std::string_view text) {
  const std::vector<std::string> texts = SplitTexts(text);
  constexpr size_t kNumbers = 6;
  std::array<int, kNumbers> numbers{};
  const auto read = [&](const std::string& from, int* number) {
    const auto result = std::from_chars(from.data(), from.data() + from.size(), *number);
    return result.ec == std::errc() && result.ptr == from.data() + from.size() && *number >= 0;
  };
  bool good = texts.size() > kFixedTexts + 1;
  for (size_t i = 0; good && i < kNumbers; ++i) good = read(texts[i], &numbers[i]);
  const size_t variables = numbers[5];
  if (!good || texts.size() - kFixedTexts - 1 <= variables || numbers[1] < 1) {
    return DataLoss("the launcher's job cannot be read");
  }
  const auto first = texts.begin() + kFixedTexts + 1;
  return Job{.first_rank = numbers[0],
             .local_world = numbers[1],
             .world = numbers[2],
             .master_address = texts[6],
             .master_port = numbers[3],
             .token = texts[7],
             .folder = texts[8],
             .bind = numbers[4] != 0,
             .remote = texts[9] != "0",
             .environment = {first, first + static_cast<int64_t>(variables)},
             .program = {first + static_cast<int64_t>(variables), texts.end()}};
}

StatusOr<std::string> NewToken() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "cannot draw a random token");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

StatusOr<int> FindFreePort() {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool found =
      file >= 0 && bind(file, any, length) == 0 && getsockname(file, any, &length) == 0;
  const int error = errno;
  if (file >= 0) close(file);
  if (!found) return ErrnoStatus(error, "cannot find a free port");
  return ntohs(address.sin_port);
}

std::vector<std::string> EnvironmentOfRank(const Job& job, int local_rank, int threads,
                                           const std::vector<std::string>& base) {
  std::vector<std::string> environment = base;
  std::erase_if(environment, [](const std::string& variable) {
    return std::find(kOtherIdentities.begin(), kOtherIdentities.end(), NameOf(variable)) !=
           kOtherIdentities.end();
  });
  std::vector<std::string> ours = {fmt::format("RANK={}", job.first_rank + local_rank),
                                   fmt::format("WORLD_SIZE={}", job.world),
                                   fmt::format("LOCAL_RANK={}", local_rank),
                                   fmt::format("LOCAL_WORLD_SIZE={}", job.local_world),
                                   "MASTER_ADDR=" + job.master_address,
                                   fmt::format("MASTER_PORT={}", job.master_port),
                                   "RINGTAIL_TOKEN=" + job.token};
  if (!HasVariable(environment, "OMP_NUM_THREADS")) {
    ours.push_back(fmt::format("OMP_NUM_THREADS={}", threads));
  }
  return MergeEnvironments(environment, ours);
}

std::vector<std::string> MergeEnvironments(const std::vector<std::string>& base,
                                           const std::vector<std::string>& more) {
  std::vector<std::string> merged;
  for (const std::string& variable : base) {
    if (!HasVariable(more, NameOf(variable))) merged.push_back(variable);
  }
  merged.insert(merged.end(), more.begin(), more.end());
  return merged;
}

}  // namespace ringtail
