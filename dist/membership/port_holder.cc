#include "dist/membership/port_holder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "core/storage/file.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxTableBytes = 64 << 20;

bool HoldsSocket(const std::filesystem::path& process, const std::vector<std::string>& sockets) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(at->path(), gone).string();
    if (std::find(sockets.begin(), sockets.end(), target) != sockets.end()) return true;
  }
  return false;
}

}  // namespace

// A line: "  0: 0100007F:7345 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 ..."
std::vector<uint64_t> ListeningInodes(std::string_view table, int port) {
  constexpr char kListening[] = "0A";
  const std::string port_text = fmt::format(":{:04X}", port);
  std::vector<uint64_t> inodes;
  std::istringstream lines{std::string(table)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout;
    uint64_t inode = 0;
    if (words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
            timeout >> inode &&
        state == kListening && local.ends_with(port_text)) {
      inodes.push_back(inode);
    }
  }
  return inodes;
}

std::string PortHolder(int port) {
  std::vector<std::string> sockets;
  for (const char* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    const StatusOr<std::string> table = ReadFileText(path, kMaxTableBytes);
    if (!table.ok()) continue;
    for (const uint64_t inode : ListeningInodes(*table, port)) {
      sockets.push_back(fmt::format("socket:[{}]", inode));
    }
  }
  if (sockets.empty()) return "";
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end;
       at.increment(error)) {
    const std::string pid = at->path().filename().string();
    if (!std::all_of(pid.begin(), pid.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    if (!HoldsSocket(at->path(), sockets)) continue;
    const StatusOr<std::string> name = ReadFileText(at->path() / "comm", 4096);
    return fmt::format("pid {} ({})", pid,
                       name.ok() ? name->substr(0, name->find('\n')) : "unknown");
  }
  return "";
}

}  // namespace ringtail
