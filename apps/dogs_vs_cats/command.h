// A verb of the program: `dogs_vs_cats <verb> flags`.
//
// AddTrainCommand and its like tell the parser about a verb's flags. If that verb is called, the
// parser stores what to do in `chosen`; main runs it after parsing has succeeded. It returns the
// exit code, or an error that main prints.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_COMMAND_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_COMMAND_H_

#include <functional>

#include "core/status.h"

namespace CLI {
class App;
}

namespace ringtail {

using Command = std::function<StatusOr<int>()>;

void AddTrainCommand(CLI::App* app, Command* chosen);
void AddEvaluateCommand(CLI::App* app, Command* chosen);
void AddPredictCommand(CLI::App* app, Command* chosen);
void AddSummaryCommand(CLI::App* app, Command* chosen);
void AddTimeCommand(CLI::App* app, Command* chosen);
void AddReplayCommand(CLI::App* app, Command* chosen);
void AddSynthesizeCommand(CLI::App* app, Command* chosen);
void AddPrepareCommand(CLI::App* app, Command* chosen);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_COMMAND_H_
