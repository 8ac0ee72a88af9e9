// The real launcher with ranks that do as they are told (rank_main.cc).
#ifndef RINGTAIL_TESTS_APPS_LAUNCH_LAUNCHED_H_
#define RINGTAIL_TESTS_APPS_LAUNCH_LAUNCHED_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/process.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {

// ringtail_launch `flags` -- rank `actions`.
inline std::vector<std::string> Launch(std::vector<std::string> flags,
                                       const std::vector<std::string>& actions) {
  flags.insert(flags.begin(), RT_BINARY_DIR "/bin/ringtail_launch");
  flags.insert(flags.end(), {"--", RT_BINARY_DIR "/tests/apps_launch_rank_main"});
  flags.insert(flags.end(), actions.begin(), actions.end());
  return flags;
}

// The same on other hosts: --ssh is fake_ssh.sh.
inline std::vector<std::string> LaunchOverSsh(std::vector<std::string> flags,
                                              const std::vector<std::string>& actions) {
  flags.insert(flags.end(), {"--ssh", RT_SOURCE_DIR "/tests/apps/launch/fake_ssh.sh"});
  return Launch(std::move(flags), actions);
}

// The lines of `text` that rank `rank` has printed, without its prefix.
std::vector<std::string> LinesOf(int rank, const std::string& text);

// Detects the end of the last of many processes and their descendants: ranks are told
// "alive=PATH", and all that they start inherit the open file.
class Lifeline {
 public:
  explicit Lifeline(const TempDir& dir);
  ~Lifeline();
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;

  std::string action() const { return "alive=" + path_; }
  // Waits for the end of all that have opened it; false if some live on after a minute.
  bool AllEnded() const;

 private:
  std::string path_;
  int file_;
};

// Pipes by which ranks notice that another has ended ("hold" and "lose").
std::string MakeFifos(const TempDir& dir, int world);

bool EndsSoon(int pid);  // any process; within a minute

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_LAUNCH_LAUNCHED_H_
