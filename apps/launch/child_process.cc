#include "apps/launch/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

#include "core/check.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// A pipe whose ends are closed on exec; posix_spawn copies the ends that a child needs.
struct Pipe {
  int read = -1, write = -1;
  bool Open() {
    std::array<int, 2> ends{-1, -1};
    const bool opened = pipe2(ends.data(), O_CLOEXEC) == 0;
    read = ends[0];
    write = ends[1];
    return opened;
  }
  static void Close(int* end) {
    if (*end >= 0) close(std::exchange(*end, -1));
  }
};

class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_init(&files);
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
};

// The parent of process `pid`, from "/proc/PID/stat": "12 (name) S 34 ..."; 0: gone.
pid_t ParentOf(const std::string& pid) {
  constexpr int64_t kMaxStatBytes = 4096;
  const auto text = ReadFileText("/proc/" + pid + "/stat", kMaxStatBytes);
  if (!text.ok()) return 0;
  const size_t name_end = text->rfind(')');  // the name may contain brackets and spaces
  constexpr size_t kStateBytes = 4;          // ") S "
  if (name_end == std::string::npos || name_end + kStateBytes > text->size()) return 0;
  pid_t parent = 0;
  std::from_chars(text->data() + name_end + kStateBytes, text->data() + text->size(), parent);
  return parent;
}

}  // namespace

StatusOr<ChildPipes> StartChild(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& environment, bool with_input) {
  Pipe input, output, errors;
  SpawnSettings settings;
  ChildPipes child;
  int error = 0;
  if ((with_input && !input.Open()) || !output.Open() || !errors.Open()) {
    error = errno;
  } else {
    if (with_input) {
      posix_spawn_file_actions_adddup2(&settings.files, input.read, STDIN_FILENO);
    } else {
      posix_spawn_file_actions_addopen(&settings.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&settings.files, output.write, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&settings.files, errors.write, STDERR_FILENO);
    error = posix_spawnp(&child.pid, arguments[0].c_str(), &settings.files, &settings.attributes,
                         Pointers(arguments).data(), Pointers(environment).data());
  }
  Pipe::Close(&input.read);
  Pipe::Close(&output.write);
  Pipe::Close(&errors.write);
  if (error != 0) {
    for (int* end : {&input.write, &output.read, &errors.read}) Pipe::Close(end);
    return ErrnoStatus(error, "cannot start '" + arguments[0] + "'");
  }
  child.input = input.write;
  child.output = output.read;
  child.errors = errors.read;
  return child;
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return environment;
}

void AdoptOrphans() {
  RT_CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "cannot become a subreaper");
}

std::set<pid_t> Children() {
  std::set<pid_t> children;
  const auto names = ListFolder("/proc");
  if (!names.ok()) return children;
  for (const std::string& name : *names) {
    if (name.front() < '1' || name.front() > '9' || ParentOf(name) != getpid()) continue;
    children.insert(std::stoi(name));
  }
  return children;
}

bool EndAllChildren(const std::set<pid_t>& spared, int seconds) {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(seconds);
  while (true) {
    bool any = false;
    for (const pid_t child : Children()) {
      if (spared.count(child) != 0) continue;
      any = true;
      kill(child, SIGKILL);  // before it is reaped, its number is not reused
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0 || !WaitForEnd(child, static_cast<int>(left))) return false;
      waitpid(child, nullptr, WNOHANG);
    }
    if (!any) return true;
  }
}

bool WaitForEnd(pid_t pid, int milliseconds) {
  // Not by glibc's wrapper, whose header lacks extern "C" in glibc 2.36.
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (handle < 0) return true;  // no process has this number
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  pollfd end = {handle, POLLIN, 0};
  int ready = -1;
  while (ready < 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    ready = poll(&end, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready < 0 && errno != EINTR) break;
  }
  close(handle);
  return ready > 0;
}

void OpenStandardFiles() {
  for (int file = 0; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);  // takes the lowest free number
  }
}

std::string ReadAvailable(int file, size_t most, bool* ended) {
  pollfd readable = {file, POLLIN, 0};
  if (poll(&readable, 1, 0) <= 0) return "";
  std::string bytes(most, '\0');
  const ssize_t got = read(file, bytes.data(), bytes.size());
  *ended = got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN);
  bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return bytes;
}

}  // namespace ringtail
