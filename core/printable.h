// Text that somebody else has written (names in configs, checkpoints and folders, what a peer or a
// login shell says), as a terminal may show it: a control character could clear the screen, retitle
// the window or forge a line, and a control of the writing direction shows "gpj.exe" for "exe.jpg".
// Every message passes through Printable where it leaves the program: LogX (core/logging.h) and the
// last sentence of each main().
// Thread-safety: functions without state. Cost: one pass.
#ifndef RINGTAIL_CORE_PRINTABLE_H_
#define RINGTAIL_CORE_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace ringtail {

// Bytes of the character at the front of `text` (not empty); 0 if it is none that a terminal just
// shows: a control (C0, DEL, C1), a line separator, an embedding, override or isolate of the writing
// direction (U+202A .. U+202E, U+2066 .. U+2069), or not UTF-8 (core/utf8.h).
size_t PrintableCharacter(std::string_view text);

// "a\x1B[2J" for the escape character itself; newlines and tabs stay, as messages have them.
std::string Printable(std::string_view text);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_PRINTABLE_H_
