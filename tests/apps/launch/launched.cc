#include "tests/apps/launch/launched.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "apps/launch/child_process.h"
#include "core/check.h"

namespace ringtail {
namespace {

constexpr int kMinuteMs = 60'000;

}  // namespace

std::vector<std::string> LinesOf(int rank, const std::string& text) {
  const std::string prefix = "[" + std::to_string(rank) + "] ";
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(prefix)) lines.push_back(line.substr(prefix.size()));
  }
  return lines;
}

Lifeline::Lifeline(const TempDir& dir) : path_(dir.File("alive")) {
  RT_CHECK(mkfifo(path_.c_str(), 0600) == 0, "cannot make a fifo");
  file_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  RT_CHECK(file_ >= 0, "cannot open a fifo");
}

Lifeline::~Lifeline() { close(file_); }

bool Lifeline::AllEnded() const {
  pollfd end = {file_, POLLIN, 0};
  return poll(&end, 1, kMinuteMs) == 1 && (end.revents & POLLHUP) != 0;
}

std::string MakeFifos(const TempDir& dir, int world) {
  for (int rank = 0; rank < world; ++rank) {
    const std::string path = dir.File("fifo-" + std::to_string(rank));
    RT_CHECK(mkfifo(path.c_str(), 0600) == 0, "cannot make a fifo");
  }
  return dir.path();
}

bool EndsSoon(int pid) { return WaitForEnd(pid, kMinuteMs); }

}  // namespace ringtail
