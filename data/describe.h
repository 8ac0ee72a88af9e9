// What a data set says about itself in the first line of a run.
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

// Why something in a folder is not one of the data set's images.
enum class IgnoredKind {
  kHidden,       // .DS_Store, ._cat.1.jpg
  kOther,        // no image's extension: Thumbs.db, README.txt
  kOtherFormat,  // an image of a format that is not read: x.webp
  kFolder,       // a folder where images are expected, even one named x.jpg
  kSpecial,      // a pipe, socket or device
  kOtherName,    // an image whose name says no class
  kEmptyClass,   // a folder beside those of the classes, without an image
};

// Counts by kind, with names where they help.
class IgnoredFiles {
 public:
  // One more of `kind`; `name` (printable) is shown with it: an extension, a folder.
  void AddNamed(IgnoredKind kind, const std::string& name);
  void Add(IgnoredKind kind, int64_t n = 1) { counts_[static_cast<int>(kind)] += n; }
  void Add(const IgnoredFiles& other);
  // " (1 other file, 2 images of other formats (.gif, .webp) ignored)", or nothing.
  std::string ToString() const;

 private:
  static constexpr size_t kKinds = 7;
  std::array<int64_t, kKinds> counts_{};
  std::array<std::set<std::string>, kKinds> names_;
};

std::string GroupDigits(int64_t n);  // "12,500"

// "12,500 cat, 12,500 dog"; with many classes "1,281,167 images in 1,000 classes". Adds what has
// no label and, if the folders say it, how many are for training and validation.
std::string DescribeSamples(const std::vector<Sample>& samples,
                            const std::vector<std::string>& class_names);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DESCRIBE_H_
