#include "apps/launch/line_splitter.h"

#include <algorithm>

namespace ringtail {

void LineSplitter::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    // The newline behind a piece that was cut at the limit has had its line already.
    if (std::exchange(cut_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const size_t newline = std::min(bytes.find('\n'), bytes.size());
    const size_t room = kMaxLineBytes - unfinished_.size();
    const std::string_view piece = bytes.substr(0, std::min(newline, room));
    unfinished_ += piece;
    bytes.remove_prefix(piece.size());
    cut_ = unfinished_.size() == kMaxLineBytes;
    if (!cut_ && bytes.empty()) return;  // the rest comes later
    if (!cut_) bytes.remove_prefix(1);
    on_line_(unfinished_);
    unfinished_.clear();
  }
}

void LineSplitter::End() {
  if (!unfinished_.empty()) on_line_(unfinished_);
  unfinished_.clear();
}

}  // namespace ringtail
