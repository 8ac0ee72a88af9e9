// Faults at chosen system calls of a program, by strace(1): to be killed there, or to see it fail.
//
//   const std::vector<std::string> program = {binary, folder};
//   for (const SystemCall& call : FileCallsBetween(program, "saving", "durable")) {
//     const ProcessResult killed = RunWithFault(program, call, "signal=KILL");
//     const ProcessResult full = RunWithFault(program, call, "error=ENOSPC");
//   }
//
// The fault comes instead of the call: a killed program has not done it. The program must do the
// same calls in every run up to there, which a program with one thread does. Thread-safety:
// functions without state. Errors: ends the test process if strace does not work.
#ifndef RINGTAIL_TESTS_TESTING_SYSTEM_CALL_FAULTS_H_
#define RINGTAIL_TESTS_TESTING_SYSTEM_CALL_FAULTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/testing/process.h"

namespace ringtail {

struct SystemCall {
  std::string name;      // "fsync"
  int occurrence = 0;    // the n-th of this name in the life of the program, from 1
  std::string as_shown;  // with arguments and result, for messages
};

// The calls that work on files and descriptors, in order, between the one that writes a text with
// `from` in it and the one that writes a text with `to` in it, both excluded. Runs the program.
std::vector<SystemCall> FileCallsBetween(const std::vector<std::string>& program,
                                         std::string_view from, std::string_view to);

// `fault` is what strace's inject= takes: "signal=KILL", "error=ENOSPC".
ProcessResult RunWithFault(const std::vector<std::string>& program, const SystemCall& call,
                           std::string_view fault);

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_TESTING_SYSTEM_CALL_FAULTS_H_
