// Log lines (core/logging.h) in a library that runs in other programs, whose standard error is not
// ours. Thread-safety: any thread.
#ifndef RINGTAIL_CORE_SILENT_LOG_H_
#define RINGTAIL_CORE_SILENT_LOG_H_

namespace ringtail {

void SilenceLog();  // no line from now on

}  // namespace ringtail

#endif  // RINGTAIL_CORE_SILENT_LOG_H_
