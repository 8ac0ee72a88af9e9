// The name of an output as users give it: "-" is standard output.
// Thread-safety: none; before any other thread prints.
#ifndef RINGTAIL_APPS_DOGS_VS_CATS_OUTPUT_PATH_H_
#define RINGTAIL_APPS_DOGS_VS_CATS_OUTPUT_PATH_H_

#include <string>

#include "core/status.h"

namespace ringtail {

// A path to write to, for --csv, --out and --trace. If it is standard output ("-", /dev/stdout),
// whatever else the program prints there from now on goes to standard error, so that the two do
// not mix. Errors: standard output is closed.
StatusOr<std::string> OutputPath(const std::string& flag);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_DOGS_VS_CATS_OUTPUT_PATH_H_
