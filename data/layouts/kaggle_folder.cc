// Kaggle's Dogs vs. Cats: train/cat.0.jpg .. cat.12499.jpg and dog.0.jpg .. dog.12499.jpg, and the
// test set test1/1.jpg .. 12500.jpg (in the Redux edition: test/).
#include <string_view>
#include <utility>

#include "data/image_name.h"
#include "data/layouts/folder_listing.h"
#include "data/layouts/layouts.h"

namespace ringtail {
namespace {

constexpr int32_t kNoLabel = -1;

// The label: 0 for "cat.12.jpg", 1 for "Dog.7.JPG".
int32_t LabelOf(std::string_view file_name) {
  const auto name = ParseNumberedName(file_name);
  if (!name) return kNoLabel;
  const std::string stem = CanonicalClassName(name->stem);
  return stem == "cat" ? 0 : stem == "dog" ? 1 : kNoLabel;
}

ImageList EmptyList(std::string layout, const std::string& root) {
  return {std::move(layout), root, {"cat", "dog"}, {}, {}};
}

}  // namespace

StatusOr<ImageList> FindKaggleImages(const std::string& folder) {
  for (const char* place : {"", "train", "train/train"}) {
    const std::string root = JoinPath(folder, place);
    if (!IsFolder(root)) continue;
    RT_ASSIGN_OR_RETURN(const FolderListing listing, ListImageFolder(root));
    ImageList list = EmptyList("Kaggle layout", root);
    list.ignored = listing.ignored;
    list.ignored.Add(IgnoredKind::kFolder, static_cast<int64_t>(listing.folders.size()));
    for (const std::string& name : listing.images) {
      const int32_t label = LabelOf(name);
      if (label == kNoLabel) {
        list.ignored.Add(IgnoredKind::kOtherName);
      } else {
        list.images.push_back({JoinPath(root, name), {EscapeName(name), label}});
      }
    }
    if (!list.images.empty()) return list;
  }
  return ImageList();
}

StatusOr<ImageList> FindUnlabelledImages(const std::string& folder) {
  for (const char* place : {"", "test1", "test"}) {
    const std::string root = JoinPath(folder, place);
    if (!IsFolder(root)) continue;
    RT_ASSIGN_OR_RETURN(const FolderListing listing, ListImageFolder(root));
    if (listing.images.empty()) continue;
    ImageList list = EmptyList("unlabelled images", root);
    list.ignored = listing.ignored;
    list.ignored.Add(IgnoredKind::kFolder, static_cast<int64_t>(listing.folders.size()));
    for (const std::string& name : listing.images) {
      list.images.push_back({JoinPath(root, name), {EscapeName(name), kNoLabel}});
    }
    return list;
  }
  return ImageList();
}

}  // namespace ringtail
