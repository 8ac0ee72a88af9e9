// What a program's parser knows of its verbs and flags, as plain values: man pages and completion are written from it,
// so that they say what --help says. Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_HELP_VERB_FLAGS_H_
#define RINGTAIL_APPS_HELP_VERB_FLAGS_H_

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ringtail {

// What a shell offers for the argument of a flag.
enum class Offer {
  kNothing,
  kChoices,  // FlagInfo::choices
  kFiles,    // any files and folders
  kFolders,
  kConfigs,       // shipped configs, and files
  kConfigNames,   // shipped configs
  kFields,        // assignments to fields of RunConfig
  kScriptFields,  // of EmulationScript
  kVerbs,
};

struct FlagInfo {
  std::vector<std::string> names;    // "-h", "--help"; empty: an argument without a flag
  std::string argument;              // "FILE", "f32|bf16"; empty: takes none
  std::vector<std::string> choices;  // all values, if they are few
  std::string range;                 // "1 - 4096"; empty: any
  std::string default_value;         // empty: none, or `description` says it
  std::string description, group;    // `group`: the heading in --help
  bool required = false;
  bool optional_argument = false;
  bool many_arguments = false;  // one after the other
  bool repeatable = false;
  Offer offer = Offer::kNothing;
};

struct VerbInfo {
  std::string name, description;
  std::string footer;  // examples and notes: the end of --help
  std::vector<FlagInfo> flags;
};

// A program; `own` has its name and the flags that it takes without a verb.
struct ProgramInfo {
  VerbInfo own;
  std::vector<VerbInfo> verbs;  // in the order of --help; may be empty
};

FlagInfo DescribeFlag(const CLI::Option& option);
ProgramInfo DescribeProgram(const CLI::App& app);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_VERB_FLAGS_H_
