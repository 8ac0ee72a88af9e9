// Makes foreign text (names in configs, checkpoints and folders, output of peers and login shells)
// safe for a terminal: a control character could clear the screen, retitle the window or forge a
// line, and a bidirectional control shows "gpj.exe" for "exe.jpg". Every message passes through
// Printable where it leaves the program: LogX (core/logging.h) and the last sentence of each
// main().
// Thread-safety: functions without state. Cost: one pass.
#ifndef RINGTAIL_CORE_TEXT_PRINTABLE_H_
#define RINGTAIL_CORE_TEXT_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace ringtail {

// Bytes of the character at the front of `text` (not empty). 0 if a terminal must not get it: a
// control (C0, DEL, C1), a line separator, a bidirectional embedding, override or isolate
// (U+202A .. U+202E, U+2066 .. U+2069), or invalid UTF-8 (core/text/utf8.h).
size_t PrintableCharacter(std::string_view text);

// `text` with such characters as "\x1B"; newlines and tabs, which messages contain, stay.
std::string Printable(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_TEXT_PRINTABLE_H_
