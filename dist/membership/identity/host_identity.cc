#include "dist/membership/identity/host_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/storage/file.h"

namespace ringtail {
namespace {

std::string& HostKeyOfTest() {
  static std::string key;  // empty: the machine's
  return key;
}

}  // namespace

void SetHostKeyForTest(const std::string& key) { HostKeyOfTest() = key; }

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

std::string HostKey() {
  if (!HostKeyOfTest().empty()) return HostKeyOfTest();
  const StatusOr<std::string> boot = ReadFileText("/proc/sys/kernel/random/boot_id", 4096);
  struct stat network {};
  const bool known = stat("/proc/self/ns/net", &network) == 0;
  return fmt::format("{} {}", boot.ok() ? boot->substr(0, boot->find('\n')) : HostName(),
                     known ? network.st_ino : 0);
}

std::string SharedMemoryKey() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string key;
  if (!std::getline(file, key) || key.empty()) return "";
  for (const char* name : {"/proc/self/ns/pid", "/proc/self/ns/net"}) {
    std::error_code error;
    key += " " + std::filesystem::read_symlink(name, error).string();
    if (error) return "";
  }
  return fmt::format("{} uid:{}{}", key, geteuid(), HostKeyOfTest());
}

}  // namespace ringtail
