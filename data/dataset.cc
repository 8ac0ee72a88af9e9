// Chooses the layout. data/README.md tells how to add one.
#include "data/dataset.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "data/decoding/image_format.h"
#include "data/image_list.h"
#include "data/image_name.h"
#include "data/layouts/layouts.h"
#include "data/layouts/nothing_found.h"
#include "data/layouts/packed_file.h"

namespace ringtail {
namespace {

constexpr std::string_view kKaggleNames =
    "cat.N.jpg and dog.N.jpg here and in train/, unlabelled images here and in test1/ or test/";
constexpr std::string_view kClassFolderNames =
    "one folder of images per class (Cat/ and Dog/) here and in PetImages/ or train/";

StatusOr<ImageList> FindKaggleOrUnlabelled(const std::string& folder) {
  RT_ASSIGN_OR_RETURN(ImageList list, FindKaggleImages(folder));
  if (!list.images.empty()) return list;
  return FindUnlabelledImages(folder);
}

// The most specific names are tried first: any folder of images could be an unlabelled test set.
StatusOr<ImageList> FindAny(const std::string& folder) {
  RT_ASSIGN_OR_RETURN(ImageList kaggle, FindKaggleImages(folder));
  if (!kaggle.images.empty()) return kaggle;
  RT_ASSIGN_OR_RETURN(ImageList classes, FindClassFolders(folder, false));
  if (!classes.images.empty()) return classes;
  RT_ASSIGN_OR_RETURN(ImageList unlabelled, FindUnlabelledImages(folder));
  if (!unlabelled.images.empty()) return unlabelled;
  return FindClassFolders(folder, true);
}

StatusOr<ImageList> ListImagesInFolder(DataConfig::Layout layout, const std::string& folder) {
  const auto listed = [&](StatusOr<ImageList> list,
                          std::string_view looked_for) -> StatusOr<ImageList> {
    if (list.ok() && list->images.empty()) return NothingFound(folder, looked_for);
    return list;
  };
  switch (layout) {
    case DataConfig::AUTO:
      return listed(FindAny(folder), fmt::format("{}, {}", kKaggleNames, kClassFolderNames));
    case DataConfig::KAGGLE:
      return listed(FindKaggleOrUnlabelled(folder), kKaggleNames);
    case DataConfig::CLASS_FOLDERS:
      return listed(FindClassFolders(folder, true), kClassFolderNames);
    case DataConfig::LIST_FILE:
    case DataConfig::PACKED:
      break;
  }
  return InvalidArgument(fmt::format("{} is a folder, but data.layout {} is a file; give the file",
                                     EscapeName(folder), DataConfig::Layout_Name(layout)));
}

StatusOr<std::unique_ptr<Dataset>> OpenFile(DataConfig::Layout layout, const std::string& path,
                                            int32_t max_file_mib) {
  if (layout == DataConfig::KAGGLE || layout == DataConfig::CLASS_FOLDERS) {
    return InvalidArgument(
        fmt::format("{} is a file, but data.layout {} is a folder; give the folder",
                    EscapeName(path), DataConfig::Layout_Name(layout)));
  }
  if (layout == DataConfig::PACKED || (layout == DataConfig::AUTO && IsPackedFile(path))) {
    return OpenPackedFile(path, max_file_mib);
  }
  if (IsArchiveName(path)) {
    return InvalidArgument(
        fmt::format("{} is an archive; unpack it and give the unpacked folder", EscapeName(path)));
  }
  if (HasImageExtension(path) || !RefusedExtension(path).empty()) {
    return InvalidArgument(fmt::format(
        "{} is a single image; give the folder that holds the images", EscapeName(path)));
  }
  RT_ASSIGN_OR_RETURN(ImageList list, ReadListFile(path));
  return MakeFileDataset(std::move(list), max_file_mib);
}

}  // namespace

StatusOr<std::unique_ptr<Dataset>> Dataset::Open(const DataConfig& config) {
  const std::string& path = config.path();
  const int32_t max_file_mib = config.bad_images().max_file_mib();
  if (path.empty()) return InvalidArgument("data.path is not set; give the folder of the images");
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("data.path contains a zero byte: " + EscapeName(path));
  }
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return NoSuchPath(path);
    return ErrnoStatus(errno, "cannot look at data.path " + EscapeName(path));
  }
  if (S_ISREG(info.st_mode)) return OpenFile(config.layout(), path, max_file_mib);
  if (!S_ISDIR(info.st_mode)) {
    return InvalidArgument(EscapeName(path) + " is neither a folder nor a file");
  }
  RT_ASSIGN_OR_RETURN(ImageList list, ListImagesInFolder(config.layout(), path));
  return MakeFileDataset(std::move(list), max_file_mib);
}

}  // namespace ringtail
