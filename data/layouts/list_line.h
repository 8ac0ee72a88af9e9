// The lines of a list file: an image's path and its label.
//
//   kittens/an image.jpg cat              the label is the last word, so that paths may have blanks
//   kittens/1.jpg<tab>white cat           or what stands behind the last tab, and may have blanks
//   image,label                           or a table, if the first line names its columns: fields
//   "kittens/1, small.jpg",white cat      between commas or tabs, in quotes where they have these
//
// Thread-safety: none. Errors: InvalidArgument without the place.
#ifndef RINGTAIL_DATA_LAYOUTS_LIST_LINE_H_
#define RINGTAIL_DATA_LAYOUTS_LIST_LINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace ringtail {

inline constexpr int32_t kMaxListLabel = 9999;

struct ListLine {
  std::string path, label;
  std::optional<int32_t> number;  // the label as a number, if it is one: -1 .. kMaxListLabel
};

// Without blanks, tabs and carriage returns at both ends.
std::string_view TrimLine(std::string_view text);

// To be given the lines of one file in their order.
class ListLineParser {
 public:
  // `text` is trimmed and not empty. Nothing for the line that names the columns.
  StatusOr<std::optional<ListLine>> Parse(std::string_view text);

 private:
  StatusOr<ListLine> ParseRow(std::string_view text) const;
  bool TakeHeading(std::string_view text);

  bool first_ = true;
  char separator_ = '\0';  // of a table's fields; 0: no table
  size_t path_ = 0, label_ = 0, columns_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DATA_LAYOUTS_LIST_LINE_H_
