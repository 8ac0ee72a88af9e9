#include "data/layouts/folder_listing.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "data/decoding/image_format.h"
#include "data/image_name.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;

// Windows and macOS add folders of their own beside images.
bool IsHidden(std::string_view name) { return name.starts_with('.') || name == "__MACOSX"; }

void AddEntry(const fs::directory_entry& entry, FolderListing* listing) {
  const std::string name = entry.path().filename().string();
  if (IsHidden(name)) return listing->ignored.Add(IgnoredKind::kHidden);
  // Answered from the directory entry; only links (and file systems that do not report the kind)
  // cost a stat. Unknown kinds count as "does not exist".
  std::error_code ignored;
  if (entry.is_directory(ignored)) {
    listing->folders.push_back(name);
  } else if (const std::string format = RefusedExtension(name); !format.empty()) {
    listing->ignored.AddNamed(IgnoredKind::kOtherFormat, format);
  } else if (!HasImageExtension(name)) {
    listing->ignored.Add(IgnoredKind::kOther);
  } else if (entry.is_regular_file(ignored) || !entry.exists(ignored)) {
    listing->images.push_back(name);
  } else {
    listing->ignored.Add(IgnoredKind::kSpecial);
  }
}

}  // namespace

StatusOr<FolderListing> ListImageFolder(const std::string& path) {
  const auto failed = [&](const std::error_code& error) {
    return ErrnoStatus(error.value(), "cannot list the folder " + EscapeName(path));
  };
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error) return failed(error);
  FolderListing listing;
  while (entries != fs::directory_iterator()) {
    AddEntry(*entries, &listing);
    entries.increment(error);
    if (error) return failed(error);
  }
  std::sort(listing.images.begin(), listing.images.end(), NaturalLess);
  std::sort(listing.folders.begin(), listing.folders.end(), NaturalLess);
  return listing;
}

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string JoinPath(std::string_view folder, std::string_view name) {
  if (folder.empty() || name.empty()) return std::string(folder) + std::string(name);
  return std::string(folder) + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

}  // namespace ringtail
