// One folder per class: Microsoft's PetImages/Cat and PetImages/Dog, torchvision's ImageFolder,
// Keras' train/ and validation/ with one folder per class in each.
#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "data/image_name.h"
#include "data/layouts/folder_listing.h"
#include "data/layouts/layouts.h"

namespace ringtail {
namespace {

// Folders of these names hold a part of a data set: they are no classes, unless the layout is
// certain.
bool IsPartName(std::string_view name) {
  constexpr std::string_view kPartNames[] = {"train",      "val",  "valid",
                                             "validation", "test", "test1"};
  return std::find(std::begin(kPartNames), std::end(kPartNames), name) != std::end(kPartNames);
}

// Collects images class by class; assigns labels at the end, when all classes are known.
class ClassCollector {
 public:
  // Adds every folder in `root` that contains images as a class.
  Status AddRoot(const std::string& root, const std::string& key_prefix, SplitPart part,
                 bool take_part_names) {
    RT_ASSIGN_OR_RETURN(const FolderListing listing, ListImageFolder(root));
    ignored_.Add(listing.ignored);
    ignored_.Add(IgnoredKind::kOtherName, static_cast<int64_t>(listing.images.size()));
    for (const std::string& name : listing.folders) {
      if (!take_part_names && IsPartName(name)) {
        ignored_.Add(IgnoredKind::kFolder);
        continue;
      }
      const std::string class_name = EscapeName(CanonicalClassName(name));
      ancestors_.clear();
      const int64_t before = num_images_;
      RT_RETURN_IF_ERROR(AddFolder(JoinPath(root, name), JoinPath(key_prefix, EscapeName(name)),
                                   part, class_name));
      if (num_images_ == before) ignored_.AddNamed(IgnoredKind::kEmptyClass, EscapeName(name));
    }
    return OkStatus();
  }

  size_t num_classes() const { return classes_.size(); }

  ImageList Finish(std::string root) {
    ImageList list{"class folders", std::move(root), {}, {}, ignored_};
    for (auto& [name, images] : classes_) {
      for (ListedImage& image : images) {
        image.sample.label = static_cast<int32_t>(list.class_names.size());
        list.images.push_back(std::move(image));
      }
      list.class_names.push_back(name);
    }
    return list;
  }

 private:
  Status AddFolder(const std::string& folder, const std::string& key, SplitPart part,
                   const std::string& class_name) {
    std::error_code failed;
    const auto real_path = std::filesystem::canonical(folder, failed);
    const bool is_loop =
        std::find(ancestors_.begin(), ancestors_.end(), real_path) != ancestors_.end();
    if (failed || is_loop) {  // a link to a folder above would never end
      ignored_.Add(IgnoredKind::kFolder);
      return OkStatus();
    }
    RT_ASSIGN_OR_RETURN(const FolderListing listing, ListImageFolder(folder));
    ignored_.Add(listing.ignored);
    num_images_ += static_cast<int64_t>(listing.images.size());
    for (const std::string& name : listing.images) {
      classes_[class_name].push_back(
          {JoinPath(folder, name), {JoinPath(key, EscapeName(name)), -1, part}});
    }
    ancestors_.push_back(real_path);
    for (const std::string& name : listing.folders) {
      RT_RETURN_IF_ERROR(
          AddFolder(JoinPath(folder, name), JoinPath(key, EscapeName(name)), part, class_name));
    }
    ancestors_.pop_back();
    return OkStatus();
  }

  std::map<std::string, std::vector<ListedImage>, NaturalOrder> classes_;
  std::vector<std::filesystem::path> ancestors_;
  int64_t num_images_ = 0;
  IgnoredFiles ignored_;
};

// train/ beside validation/: takes both and marks each sample with its part.
StatusOr<ImageList> FindSplitFolders(const std::string& folder) {
  const std::string train = JoinPath(folder, "train");
  if (!IsFolder(train)) return ImageList();
  for (const char* name : {"validation", "val", "valid"}) {
    const std::string validation = JoinPath(folder, name);
    if (!IsFolder(validation)) continue;
    ClassCollector collector;
    RT_RETURN_IF_ERROR(collector.AddRoot(train, "train", SplitPart::kTrain, true));
    if (collector.num_classes() == 0) return ImageList();
    RT_RETURN_IF_ERROR(collector.AddRoot(validation, name, SplitPart::kValidation, true));
    return collector.Finish(folder);
  }
  return ImageList();
}

}  // namespace

StatusOr<ImageList> FindClassFolders(const std::string& folder, bool certain) {
  RT_ASSIGN_OR_RETURN(ImageList split, FindSplitFolders(folder));
  if (!split.images.empty()) return split;
  ImageList single_class;
  for (const char* place : {"", "PetImages", "train"}) {
    const std::string root = JoinPath(folder, place);
    if (!IsFolder(root)) continue;
    ClassCollector collector;
    RT_RETURN_IF_ERROR(collector.AddRoot(root, "", SplitPart::kByConfig, certain));
    if (collector.num_classes() >= 2) return collector.Finish(root);
    if (collector.num_classes() == 1) single_class = collector.Finish(root);  // the innermost
  }
  return certain ? std::move(single_class) : ImageList();
}

}  // namespace ringtail
