// The description of a data set in the first line of a run.
// Thread-safety: functions without state; IgnoredFiles is a value type.
#ifndef RINGTAIL_DATA_DESCRIBE_H_
#define RINGTAIL_DATA_DESCRIBE_H_

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// Why an entry of a folder is not one of the data set's images.
enum class IgnoredKind {
  kHidden,       // .DS_Store, ._cat.1.jpg
  kOther,        // not an image's extension: Thumbs.db, README.txt
  kOtherFormat,  // an image of an unsupported format: x.gif
  kFolder,       // a folder among images, even if named x.jpg
  kSpecial,      // a pipe, socket or device
  kOtherName,    // an image whose name contains no class
  kEmptyClass,   // a folder without images beside the class folders
};

// Counts by kind, with names of some.
class IgnoredFiles {
 public:
  // Adds one of `kind`; `name` (printable) is shown with it: an extension, a folder.
  void AddNamed(IgnoredKind kind, const std::string& name);
  // Of `other`, what is of this kind.
  void AddOnly(IgnoredKind kind, const IgnoredFiles& other);
  void Add(IgnoredKind kind, int64_t n = 1) { counts_[static_cast<int>(kind)] += n; }
  void Add(const IgnoredFiles& other);
  const std::set<std::string>& names(IgnoredKind kind) const {
    return names_[static_cast<size_t>(kind)];
  }
  // " (1 other file, 2 images of other formats (.gif, .heic) ignored)", or "".
  std::string ToString() const;

 private:
  static constexpr size_t kKinds = 7;
  std::array<int64_t, kKinds> counts_{};
  std::array<std::set<std::string>, kKinds> names_;
};

std::string GroupDigits(int64_t n);  // "12,500"

// "12,500 cat, 12,500 dog"; with many classes "1,281,167 images in 1,000 classes". Adds the number
// of unlabelled images and, if the folders tell, how many are for training and validation.
std::string DescribeSamples(const std::vector<Sample>& samples,
                            const std::vector<std::string>& class_names);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DESCRIBE_H_
