// The entries of one folder by name and kind; opens no file, follows only links. Cost: one pass
// over the directory, without a stat per file on file systems that report the kind of an entry.
// Thread-safety: functions without state. Errors: PermissionDenied, NotFound and the like, with the
// folder.
#ifndef RINGTAIL_DATA_LAYOUTS_FOLDER_LISTING_H_
#define RINGTAIL_DATA_LAYOUTS_FOLDER_LISTING_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "data/describe.h"

namespace ringtail {

// Names as on disk, in natural order.
struct FolderListing {
  // Files named like an image, including dangling links, for which reading gives the reason.
  std::vector<std::string> images;
  std::vector<std::string> folders;  // not the hidden ones
  IgnoredFiles ignored;
};

StatusOr<FolderListing> ListImageFolder(const std::string& path);

bool IsFolder(const std::string& path);
std::string JoinPath(std::string_view folder, std::string_view name);  // "" + "x" is "x"

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_FOLDER_LISTING_H_
