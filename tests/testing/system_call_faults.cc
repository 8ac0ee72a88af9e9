#include "tests/testing/system_call_faults.h"

#include <fstream>
#include <map>

#include "core/check.h"
#include "tests/testing/temp_dir.h"

namespace ringtail {
namespace {

constexpr const char* kFileCalls = "trace=%file,%desc";

ProcessResult RunUnderStrace(const std::vector<std::string>& options,
                             const std::vector<std::string>& program) {
  std::vector<std::string> arguments = {"strace", "-e", kFileCalls};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), program.begin(), program.end());
  // The leak checker of a sanitizer build traces the process, too, and there can be only one.
  return RunProcess(std::move(arguments), {"ASAN_OPTIONS=detect_leaks=0"});
}

// "fsync" of "fsync(4) = 0"; nothing for lines that are no calls, such as "+++ exited with 0 +++".
std::string CallName(std::string_view line) {
  const size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
  if (end == 0 || end == std::string_view::npos || line[end] != '(') return "";
  return std::string(line.substr(0, end));
}

}  // namespace

std::vector<SystemCall> FileCallsBetween(const std::vector<std::string>& program,
                                         std::string_view from, std::string_view to) {
  const TempDir dir;
  const ProcessResult result = RunUnderStrace({"-o", dir.File("trace")}, program);
  RT_CHECK(result.exit_code == 0, "tracing failed (is strace installed?): " + result.err);

  std::ifstream trace(dir.File("trace"));
  std::map<std::string, int> occurrences;
  std::vector<SystemCall> calls;
  bool begun = false, ended = false;
  for (std::string line; std::getline(trace, line) && !ended;) {
    const std::string name = CallName(line);
    if (name.empty()) continue;
    const int occurrence = ++occurrences[name];
    const bool writes = name == "write";
    ended = begun && writes && line.find(to) != std::string::npos;
    // mmap is a call on descriptors, but mostly one of the memory allocator.
    if (begun && !ended && name != "mmap") calls.push_back({name, occurrence, line});
    begun = begun || (writes && line.find(from) != std::string::npos);
  }
  RT_CHECK(begun && ended, "the program did not write both marks");
  return calls;
}

ProcessResult RunWithFault(const std::vector<std::string>& program, const SystemCall& call,
                           std::string_view fault) {
  const std::string inject =
      "inject=" + call.name + ":" + std::string(fault) + ":when=" + std::to_string(call.occurrence);
  return RunUnderStrace({"-o", "/dev/null", "-e", inject}, program);
}

}  // namespace ringtail
