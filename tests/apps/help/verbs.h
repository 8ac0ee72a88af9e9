// The verbs and flags of the program, read from their --help: what man pages and completion have to have.
#ifndef RINGTAIL_TESTS_APPS_HELP_VERBS_H_
#define RINGTAIL_TESTS_APPS_HELP_VERBS_H_

#include <set>
#include <string>
#include <vector>

#include "tests/testing/process.h"

namespace ringtail {

struct VerbHelp {
  std::string name;
  std::string help;             // as --help prints it, if the test were the program
  std::set<std::string> flags;  // long names: "--config"
};

ProcessResult RunRingtail(std::vector<std::string> arguments);

// In the order of --help. Read once per process. There are more than ten, and `train` has --data.
const std::vector<VerbHelp>& AllVerbs();

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_APPS_HELP_VERBS_H_
