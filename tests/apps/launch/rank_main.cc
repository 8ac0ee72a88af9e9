// A rank that does as it is told, for tests of the launcher:
//
//   apps_launch_rank_main [RANK:]ACTION[=VALUE]...
//
// Actions are done in turn, those with a number by that rank only; see kActions.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>

#include "apps/launch/agent/core_split.h"
#include "apps/launch/number_list.h"

namespace ringtail {
namespace {

int Number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? -1 : std::atoi(text);
}

std::string Fifo(const std::string& folder, int rank) {
  return folder + "/fifo-" + std::to_string(rank);
}

// The others see the end of their files when this process ends, however it does.
void Hold(const std::string& folder) {
  for (int rank = 0; rank < Number("WORLD_SIZE"); ++rank) {
    if (rank != Number("RANK") && open(Fifo(folder, rank).c_str(), O_WRONLY) < 0) _exit(1);
  }
}

// Waits until the rank that holds has ended.
void Lose(const std::string& folder) {
  const int file = open(Fifo(folder, Number("RANK")).c_str(), O_RDONLY);
  char byte = 0;
  if (file < 0 || read(file, &byte, 1) != 0) _exit(1);
}

void PrintEnvironment(const std::string&) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                           "MASTER_PORT", "RINGTAIL_TOKEN", "RINGTAIL_RANK", "RINGTAIL_TOKEN_FILE",
                           "OMP_NUM_THREADS", "RINGTAIL_NOTE", "NOTE"}) {
    const char* value = std::getenv(name);
    std::printf("%s=%s\n", name, value == nullptr ? "" : value);
  }
}

// Waits for one of the signals that main() has blocked, and ends as they ask.
void Wait(const std::string&) {
  sigset_t set;
  int signal = 0;
  sigprocmask(SIG_BLOCK, nullptr, &set);
  if (sigwait(&set, &signal) != 0) _exit(1);
  std::printf("got %d\n", signal);
  std::exit(128 + signal);
}

// A descendant in a session of its own that would continue for ever, with all our files open.
void LeaveOrphan(const std::string&) {
  if (fork() != 0) return;
  setsid();
  if (fork() != 0) _exit(0);
  std::printf("orphan %d\n", getpid());
  std::fflush(stdout);
  while (true) pause();
}

void PrintLines(const std::string& count) {
  const char letter = static_cast<char>('a' + Number("RANK"));
  for (int line = 0; line < std::stoi(count); ++line) {
    std::string text(line % 100, letter);
    std::fprintf(line % 3 == 0 ? stderr : stdout, "%s\n", text.c_str());
    if (line % 7 == 0) std::fflush(stdout);
  }
}

using Action = void (*)(const std::string& value);
const std::map<std::string, Action> kActions = {
    {"say", [](const std::string& text) { std::printf("%s\n", text.c_str()); }},
    {"complain", [](const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }},
    {"part", [](const std::string& text) { std::printf("%s", text.c_str()); }},
    {"long", [](const std::string& n) { std::printf("%s", std::string(stoi(n), 'x').c_str()); }},
    {"lines", PrintLines},
    {"environment", PrintEnvironment},
    {"cores",
     [](const std::string&) { std::printf("%s\n", FormatNumbers(AllowedCores()).c_str()); }},
    {"pid", [](const std::string&) { std::printf("pid %d of %d\n", getpid(), getppid()); }},
    {"agent", [](const std::string&) { std::printf("agent %d\n", getppid()); }},
    {"alive",  // open for as long as this process or one that it has started lives
     [](const std::string& fifo) {
       if (open(fifo.c_str(), O_WRONLY) < 0) _exit(1);
     }},
    {"hold", Hold},
    {"lose", Lose},
    {"wait", Wait},
    {"orphan", LeaveOrphan},
    {"pause",
     [](const std::string&) {
       while (true) pause();
     }},
    {"raise",  // also a signal that main() has blocked, but no other that waits
     [](const std::string& number) {
       const int signal = stoi(number);
       sigset_t set;
       sigemptyset(&set);
       sigaddset(&set, signal);
       ::signal(signal, SIG_DFL);
       sigprocmask(SIG_UNBLOCK, &set, nullptr);
       raise(signal);
     }},
    {"abort", [](const std::string&) { std::abort(); }},
    {"throw", [](const std::string&) { throw std::runtime_error("uncaught"); }},
    {"exit", [](const std::string& code) { std::exit(stoi(code)); }},
    {"_exit", [](const std::string& code) { _exit(stoi(code)); }},
};

int Main(int count, char** arguments) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);  // until "wait" takes them: none comes too early
  for (int i = 1; i < count; ++i) {
    std::string action = arguments[i];
    const size_t colon = action.find(':');
    if (colon == 1) {
      if (action[0] - '0' != Number("RANK")) continue;
      action.erase(0, colon + 1);
    }
    const size_t equals = std::min(action.find('='), action.size());
    const auto found = kActions.find(action.substr(0, equals));
    if (found == kActions.end()) return 2;
    found->second(equals < action.size() ? action.substr(equals + 1) : "");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace ringtail

int main(int count, char** arguments) { return ringtail::Main(count, arguments); }
