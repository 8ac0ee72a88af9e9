// The text of a config file, and errors that point into it:
//
//   lenet.textproto:7:25: unknown field 'kernal' of ConvolutionConfig; did you mean 'kernel'?
//     layer { convolution { kernal: 3 } }
//                           ^
//
// Lines and columns count from 1; a column is a character (UTF-8), a tab is one column. Long lines
// are cut around the caret. Thread-safety: immutable.
#ifndef RINGTAIL_CORE_CONFIG_SOURCE_TEXT_H_
#define RINGTAIL_CORE_CONFIG_SOURCE_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace ringtail {

// The end of the string or comment that starts at `begin`; strings end with their line.
size_t EndOfQuoted(std::string_view text, size_t begin);

class SourceText {
 public:
  SourceText(std::string file_name, std::string text);

  std::string_view text() const { return text_; }
  const std::string& file_name() const { return file_name_; }

  // The byte at a position of protobuf's tokenizer: line and column count from 0, a tab advances to
  // the next multiple of 8, any other byte is one column. Positions outside the text map to its
  // nearest end.
  size_t OffsetOf(int line, int column) const;

  // InvalidArgument that points at the byte `offset`.
  Status Error(size_t offset, std::string_view message) const;

 private:
  size_t LineOf(size_t offset) const;        // from 0
  std::string_view Line(size_t line) const;  // without its end

  std::string file_name_;
  std::string text_;
  std::vector<size_t> line_begins_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_SOURCE_TEXT_H_
