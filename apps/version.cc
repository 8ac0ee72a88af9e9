#include "apps/version.h"

namespace ringtail {

std::string VersionLine() { return std::string("ringtail ") + kRingtailVersion; }

}  // namespace ringtail
