// What a data set says about itself in the first line of a run.
// Thread-safety: functions without state; IgnoredFiles is a value type.
#ifndef RINGTAIL_DATA_DESCRIBE_H_
#define RINGTAIL_DATA_DESCRIBE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace ringtail {

// Why something in a folder is not one of the data set's pictures.
enum class IgnoredKind {
  kHidden,     // .DS_Store, ._cat.1.jpg
  kOther,      // no picture's extension: Thumbs.db, README.txt
  kFolder,     // a folder where pictures are expected, even one named x.jpg
  kSpecial,    // a pipe, socket or device
  kOtherName,  // a picture whose name says no class
};

// Counts by kind.
class IgnoredFiles {
 public:
  void Add(IgnoredKind kind, int64_t n = 1) { counts_[static_cast<int>(kind)] += n; }
  void Add(const IgnoredFiles& other);
  // " (1 other file, 2 hidden files ignored)", or nothing.
  std::string ToString() const;

 private:
  std::array<int64_t, 5> counts_{};
};

std::string GroupDigits(int64_t n);  // "12,500"

// "12,500 cat, 12,500 dog"; with many classes "1,281,167 pictures in 1,000 classes". Adds what has
// no label and, if the folders say it, how many are for training and validation.
std::string DescribeSamples(const std::vector<Sample>& samples,
                            const std::vector<std::string>& class_names);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_DESCRIBE_H_
