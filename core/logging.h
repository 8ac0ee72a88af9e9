// Log lines on stderr, one per event: "I 11:25:43 message". Messages are composed with fmt:
//   LogInfo(fmt::format("epoch={} accuracy={:.4f}", epoch, accuracy));
// In colours on a terminal, unless the environment has NO_COLOR (no-color.org).
// Messages may contain names from anywhere: unprintable characters are escaped (core/text/printable.h).
// Thread-safety: any thread.
#ifndef RINGTAIL_CORE_LOGGING_H_
#define RINGTAIL_CORE_LOGGING_H_

#include <string_view>

namespace ringtail {

void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);

// While a line that is redrawn stands on the terminal (a progress bar): lines of the log take its
// place, so that neither is torn.
void SetRedrawnLine(bool shown);

// No line from now on: for a library in other programs, whose standard error is not ours.
void SilenceLog();

}  // namespace ringtail

#endif  // RINGTAIL_CORE_LOGGING_H_
