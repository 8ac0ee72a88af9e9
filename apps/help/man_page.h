// Man pages (troff with the macros of man(7)), written from what the parser knows.
// Thread-safety: pure functions.
#ifndef RINGTAIL_APPS_HELP_MAN_PAGE_H_
#define RINGTAIL_APPS_HELP_MAN_PAGE_H_

#include <string>
#include <vector>

#include "apps/help/verb_flags.h"

namespace ringtail {

struct ManPage {
  std::string file;  // "ringtail-train.1"
  std::string text;
};

// The page of the program and one for each of its verbs. `other_name`, unless empty, is a name that the program has,
// too: its page refers to the first one.
std::vector<ManPage> ManPages(const ProgramInfo& program, const std::string& other_name = "");

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_MAN_PAGE_H_
