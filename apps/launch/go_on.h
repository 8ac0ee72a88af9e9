// What to type to go on with a training job that has ended before its time: the launcher's command
// line, with --resume.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_LAUNCH_GO_ON_H_
#define RINGTAIL_APPS_LAUNCH_GO_ON_H_

#include <span>
#include <string>
#include <vector>

namespace ringtail {

// `word` as a shell takes it: in quotes if it has to be.
std::string ShellWord(const std::string& word);

// "ringtail_launch -n 2 -- dogs_vs_cats train --output runs/a --resume". `launcher`: its words up to
// "--"; `program`: those behind it. Empty if they do not start `dogs_vs_cats train`, of which alone it
// is known how it goes on.
std::string CommandToGoOn(std::span<const std::string> launcher,
                          std::span<const std::string> program);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_GO_ON_H_
