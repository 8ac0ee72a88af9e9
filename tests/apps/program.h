// Starts the real program, as a user does.
#ifndef RINGTAIL_TESTS_APPS_PROGRAM_H_
#define RINGTAIL_TESTS_APPS_PROGRAM_H_

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/process.h"

namespace ringtail {

// dogs_vs_cats of this build, followed by `arguments`.
inline std::vector<std::string> DogsVsCats(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RT_BINARY_DIR "/bin/dogs_vs_cats");
  return arguments;
}

inline ProcessResult RunDogsVsCats(std::vector<std::string> arguments) {
  return RunProcess(DogsVsCats(std::move(arguments)));
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_PROGRAM_H_
