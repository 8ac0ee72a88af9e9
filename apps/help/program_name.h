// The program has two names, `ringtail` and `dogs_vs_cats`: help, examples and errors have the one that it was called
// by. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_HELP_PROGRAM_NAME_H_
#define RINGTAIL_APPS_HELP_PROGRAM_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace ringtail {

// The names as which the program is installed.
inline constexpr char kProgramName[] = "ringtail", kOtherProgramName[] = "dogs_vs_cats";

// The last part of argv[0]. Valid as long as the process.
const char* ProgramName();

// The end of a verb's --help: each of `commands` behind the program's name, then `notes`, if there are any.
//
//   Examples
//     ringtail train --data ~/pets
std::string Examples(const std::vector<std::string_view>& commands, std::string_view notes = "");

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_PROGRAM_NAME_H_
