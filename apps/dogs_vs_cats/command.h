// A verb of the program: `ringtail <verb> flags`.
//
// Each verb has a row in RT_FOR_EACH_VERB (LrFind: `lr-find`) and a file <verb>_command.cc, which defines
// Add<Verb>Command: it describes the verb's flags to the parser. When the verb is called, the
// parser stores its command in `chosen`; main runs the command after parsing has succeeded. A
// command returns the exit code, or an error that main prints.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_COMMAND_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_COMMAND_H_

#include <functional>

#include "core/status.h"

namespace CLI {
class App;
}

namespace ringtail {

using Command = std::function<StatusOr<int>()>;

// In the order of --help.
#define RT_FOR_EACH_VERB(ROW) \
  ROW(Train)                  \
  ROW(LrFind)                 \
  ROW(Evaluate)               \
  ROW(Report)                 \
  ROW(Predict)                \
  ROW(Configs)                \
  ROW(Export)                 \
  ROW(Summary)                \
  ROW(Time)                   \
  ROW(Plan)                   \
  ROW(Replay)                 \
  ROW(Emulate)                \
  ROW(Synthesize)             \
  ROW(Prepare)                \
  ROW(Help)                   \
  ROW(Completion)             \
  ROW(Manual)

#define RT_DECLARE_VERB(Verb) void Add##Verb##Command(CLI::App* app, Command* chosen);
RT_FOR_EACH_VERB(RT_DECLARE_VERB)
#undef RT_DECLARE_VERB

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_COMMAND_H_
