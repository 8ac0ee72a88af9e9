// Text for HTML: names of files and classes may hold anything, and must show as they are.
// Thread-safety: functions without state.
#ifndef RINGTAIL_APPS_REPORT_HTML_H_
#define RINGTAIL_APPS_REPORT_HTML_H_

#include <string>
#include <string_view>

namespace ringtail {

// For text and quoted attributes alike: & < > " ' as character references; control characters,
// bidirectional controls and invalid UTF-8 as "\x1B" (core/text/printable.h).
std::string HtmlEscape(std::string_view text);

// A name that is written from right to left leaves the order of what is around it alone: <bdi>.
std::string HtmlName(std::string_view name);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_REPORT_HTML_H_
