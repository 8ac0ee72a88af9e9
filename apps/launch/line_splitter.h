// Cuts a stream of bytes into lines, so that lines of several ranks are never mixed:
//
//   "loss 0.5\nlo"  "ss 0.4\n"  end      ->   "loss 0.5\n"  "loss 0.4\n"
//
// A line longer than kMaxLineBytes is cut into lines of that length; a last line without newline
// counts as a line. Thread-safety: none. Cost: each byte is copied at most once.
#ifndef RINGTAIL_APPS_LAUNCH_LINE_SPLITTER_H_
#define RINGTAIL_APPS_LAUNCH_LINE_SPLITTER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace ringtail {

class LineSplitter {
 public:
  static constexpr size_t kMaxLineBytes = 1 << 16;
  using LineFunction = std::function<void(std::string_view line)>;  // without newline

  explicit LineSplitter(LineFunction on_line) : on_line_(std::move(on_line)) {}

  void Add(std::string_view bytes);
  void End();  // the stream or its rank has ended

 private:
  const LineFunction on_line_;
  std::string unfinished_;
  bool cut_ = false;  // the last line ended at the limit
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_LINE_SPLITTER_H_
