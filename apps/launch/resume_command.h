// The command that continues a training job that ended early: the launcher's command line with
// --resume.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_RESUME_COMMAND_H_
#define RINGTAIL_APPS_LAUNCH_RESUME_COMMAND_H_

#include <span>
#include <string>
#include <vector>

namespace ringtail {

// `word` quoted for a shell where that is necessary.
std::string ShellWord(const std::string& word);

// "ringtail_launch -n 2 -- dogs_vs_cats train --output runs/a --resume". `launcher`: the words up
// to "--"; `program`: those after it. Empty for programs other than `ringtail train` (or `dogs_vs_cats train`), which
// cannot be resumed.
std::string ResumeCommand(std::span<const std::string> launcher,
                          std::span<const std::string> program);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_RESUME_COMMAND_H_
