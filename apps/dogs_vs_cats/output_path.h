// Output files on the command line, where "-" is standard output.
// Thread-safety: none; to be called before any other thread prints.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_OUTPUT_PATH_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_OUTPUT_PATH_H_

#include <string>

#include "core/status.h"

namespace ringtail {

// The path to write to for --csv, --out and --trace. If that is standard output ("-", /dev/stdout),
// redirects all other output of the program to standard error from now on, so that the two do not
// mix. Errors: standard output is closed.
StatusOr<std::string> OutputPath(const std::string& flag);

// For work that takes long before it writes to `path` (as OutputPath gives it): whether a file can
// probably be written there. Creates and opens nothing. Errors name the path: a folder, or one that
// is missing or cannot be written to.
Status CheckOutputPath(const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_OUTPUT_PATH_H_
