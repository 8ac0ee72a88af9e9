// The error for a folder without images: the names that were looked for, the folder's entries, and
// what to do.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DATA_LAYOUTS_NOTHING_FOUND_H_
#define RINGTAIL_DATA_LAYOUTS_NOTHING_FOUND_H_

#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

// For a folder without `looked_for`.
Status NothingFound(const std::string& folder, std::string_view looked_for);
// For a path that does not exist: names the nearest existing folder above it and its entries.
Status NoSuchPath(const std::string& path);

bool IsArchiveName(std::string_view name);  // train.zip, pets.tar.gz

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_NOTHING_FOUND_H_
