// Reads the script of an emulation (script.proto), applies --script-set, and checks it as a whole.
// Thread-safety: functions without state. Errors: InvalidArgument "file:line:column: what is wrong".
#ifndef RINGTAIL_APPS_EMULATOR_SCRIPT_H_
#define RINGTAIL_APPS_EMULATOR_SCRIPT_H_

#include <span>
#include <string>
#include <string_view>

#include "apps/emulator/clock/speed_model.h"
#include "apps/emulator/script.pb.h"
#include "core/status.h"
#include "dist/collectives/link_model.h"

namespace ringtail {

// An empty `path`: all defaults.
StatusOr<EmulationScript> ReadScript(const std::string& path,
                                     std::span<const std::string> overrides);
// `name` stands for the file in messages.
StatusOr<EmulationScript> ParseScript(std::string_view text, std::string_view name,
                                      std::span<const std::string> overrides = {});

// Of a checked script.
NetworkModel NetworkOf(const EmulationScript& script);
SpeedModel SpeedOf(const EmulationScript& script);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_SCRIPT_H_
