// What the completion of all shells is written from. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_HELP_COMPLETION_H_
#define RINGTAIL_APPS_HELP_COMPLETION_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/help/verb_flags.h"

namespace ringtail {

// What completion knows beside verbs and flags.
struct CompletionWords {
  std::vector<std::string> configs;                // names of shipped configs
  std::vector<std::string> fields, script_fields;  // FieldAssignments (apps/help/field_paths.h)
};

// A script that completes `program`, and `other_name`, unless it is empty, alike.
std::string BashCompletion(const ProgramInfo& program, const std::string& other_name,
                           const CompletionWords& words);
std::string ZshCompletion(const ProgramInfo& program, const std::string& other_name,
                          const CompletionWords& words);
std::string FishCompletion(const ProgramInfo& program, const std::string& other_name,
                           const CompletionWords& words);

// `text` with each @name@ replaced by its value.
std::string FillIn(std::string_view text,
                   const std::vector<std::pair<std::string_view, std::string>>& values);

// A string of bash and zsh: in single quotes.
std::string ShellQuoted(std::string_view text);
// Words in single quotes, with blanks between them.
std::string ShellWords(const std::vector<std::string>& words);

std::vector<std::string> VerbNames(const ProgramInfo& program);
// All names of all flags: "-h", "--help", ...
std::vector<std::string> FlagNames(const std::vector<FlagInfo>& flags);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_COMPLETION_H_
