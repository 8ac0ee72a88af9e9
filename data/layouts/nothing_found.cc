#include "data/layouts/nothing_found.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "data/image_name.h"
#include "data/layouts/folder_listing.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNamesShown = 6;

struct Content {
  std::vector<std::string> names;  // escaped, natural order
  std::string archive;             // the first archive among them
};

Content ContentOf(const fs::path& folder) {
  Content content;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); entry != fs::directory_iterator() && !error;
       entry.increment(error)) {
    content.names.push_back(EscapeName(entry->path().filename().string()));
  }
  std::sort(content.names.begin(), content.names.end(), NaturalLess);
  const auto archive = std::find_if(content.names.begin(), content.names.end(), IsArchiveName);
  if (archive != content.names.end()) content.archive = *archive;
  return content;
}

// Images of formats that are not read, in the folder and in those that are in it.
std::string Unread(const std::string& folder) {
  IgnoredFiles found;
  const auto add = [&found](const std::string& path) {
    const StatusOr<FolderListing> listing = ListImageFolder(path);
    if (!listing.ok()) return std::vector<std::string>();
    found.AddOnly(IgnoredKind::kOtherFormat, listing->ignored);
    return listing->folders;
  };
  for (const std::string& name : add(folder)) add(JoinPath(folder, name));
  return found.ToString();
}

std::string Enumerate(std::vector<std::string> names) {
  if (names.empty()) return "nothing";
  const size_t more = names.size() - std::min(names.size(), kNamesShown);
  names.resize(names.size() - more);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
}

}  // namespace

bool IsArchiveName(std::string_view name) {
  constexpr std::string_view kEndings[] = {".zip", ".tar", ".tgz", ".gz",
                                           ".xz",  ".bz2", ".7z",  ".rar"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

Status NothingFound(const std::string& folder, std::string_view looked_for) {
  const Content content = ContentOf(folder);
  const std::string unread = Unread(folder);
  const std::string advice =
      !unread.empty() ? fmt::format("convert these to JPEG{}", unread)
      : content.archive.empty()
          ? "give the folder that holds the images, or set data.layout"
          : fmt::format("unpack {} and give the unpacked folder", content.archive);
  return NotFound(fmt::format("no images in {}: looked for {}; there is {}; {}", EscapeName(folder),
                              looked_for, Enumerate(content.names), advice));
}

Status NoSuchPath(const std::string& path) {
  std::error_code error;
  fs::path parent = fs::absolute(path, error).lexically_normal().parent_path();
  while (!fs::is_directory(parent, error) && parent.has_relative_path()) {
    parent = parent.parent_path();
  }
  return NotFound(fmt::format("there is no file or folder {}; in {} there is {}", EscapeName(path),
                              EscapeName(parent.string()), Enumerate(ContentOf(parent).names)));
}

}  // namespace ringtail
