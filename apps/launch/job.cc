#include "apps/launch/job.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "dist/membership/identity/rank_identity.h"

namespace ringtail {
namespace {

// Variables that would compete with our own.
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

}  // namespace

Status CheckJob(const LaunchJob& job) {
  const bool valid = job.program_size() > 0 && job.first_rank() >= 0 && job.local_world() >= 1 &&
                     job.world() <= kMaxWorldSize &&
                     job.first_rank() <= job.world() - job.local_world();
  return valid ? OkStatus() : DataLoss("the launcher sent a job without a program or ranks");
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

std::vector<std::string> EnvironmentOfRank(const LaunchJob& job, int local_rank, int threads,
                                           const std::vector<std::string>& base) {
  std::vector<std::string> environment = base;
  std::erase_if(environment, [](const std::string& variable) {
    return std::find(kOtherIdentities.begin(), kOtherIdentities.end(), NameOf(variable)) !=
           kOtherIdentities.end();
  });
  std::vector<std::string> ours = {fmt::format("RANK={}", job.first_rank() + local_rank),
                                   fmt::format("WORLD_SIZE={}", job.world()),
                                   fmt::format("LOCAL_RANK={}", local_rank),
                                   fmt::format("LOCAL_WORLD_SIZE={}", job.local_world()),
                                   "MASTER_ADDR=" + job.master_address(),
                                   fmt::format("MASTER_PORT={}", job.master_port()),
                                   "RINGTAIL_TOKEN=" + job.token()};
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
