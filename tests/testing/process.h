// Child processes for tests: started with posix_spawn (never a bare fork: the parent may have
// threads), with their output collected, and killed with their owner, so that no test leaves one
// behind.
//
//   ChildProcess worker({binary, "--steps", "5"});
//   worker.ReadLine();                        // waits for the first line
//   worker.Signal(SIGKILL);
//   const ProcessResult result = worker.Wait();
//
// A child that does not end within the time limit is killed and reported as `timed_out`.
// Thread-safety: none. Errors: a program that cannot be started ends the test process.
#ifndef RINGTAIL_TESTS_TESTING_PROCESS_H_
#define RINGTAIL_TESTS_TESTING_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ringtail {

struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;      // the signal that ended it; 0: it exited
  bool timed_out = false;
  long max_rss_kib = 0;  // peak memory of the child
  std::string out, err;  // all of standard output and standard error
};

class ChildProcess {
 public:
  static constexpr std::chrono::seconds kDefaultTimeLimit{120};

  // Looks `arguments[0]` up in PATH; `extra_environment` ("NAME=value") goes before our own.
  explicit ChildProcess(std::vector<std::string> arguments,
                        std::vector<std::string> extra_environment = {},
                        std::chrono::seconds time_limit = kDefaultTimeLimit);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // All at the same time, as it sees them: the lowest number first.
  void SignalTogether(const std::vector<int>& signals) const;

  // The next line of standard output without its newline; nothing once the output has ended.
  std::optional<std::string> ReadLine();
  // Reads until `text` stands in standard error; false if both outputs end without it.
  bool ReadUntilError(std::string_view text);

  // Waits for the end of output and process. `result.out` includes what ReadLine returned.
  ProcessResult Wait();

 private:
  bool ReadSome();               // false once both pipes have ended or the time is over
  bool WaitUntilItEnds() const;  // false if the time is over
  int MillisecondsLeft() const;

  pid_t pid_ = -1;
  int out_pipe_ = -1, err_pipe_ = -1;
  std::chrono::steady_clock::time_point deadline_;
  size_t next_line_ = 0;  // in result_.out
  ProcessResult result_;
};

// Start and wait in one.
ProcessResult RunProcess(std::vector<std::string> arguments,
                         std::vector<std::string> extra_environment = {},
                         std::chrono::seconds time_limit = ChildProcess::kDefaultTimeLimit);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_PROCESS_H_
