// Prints the output of all ranks line by line, each line behind the number of its rank, to standard
// output and standard error, and to one file per rank if a folder is given:
//
//   [2] step 10 loss 0.41
//
// If standard output and standard error are one file or terminal, they share one queue, so that
// the lines of one never interrupt a line of the other. Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_RANK_OUTPUT_H_
#define RINGTAIL_APPS_LAUNCH_RANK_OUTPUT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/launch/line_splitter.h"
#include "apps/launch/out_queue.h"
#include "apps/launch/poll_loop.h"
#include "core/status.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {

class RankOutput {
 public:
  // `program` stands before messages of this program itself. `on_line_of_rank_0`, if set, receives
  // the lines of rank 0's standard output, which are then not printed.
  RankOutput(PollLoop* loop, int world, std::string program,
             LineSplitter::LineFunction on_line_of_rank_0);
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  Status OpenFiles(const std::string& folder);  // rank-0.txt, ...
  void Add(int rank, bool errors, std::string_view bytes);
  void End(int rank);  // prints its unfinished lines
  // Prints a message of this program, of a login shell or of ssh to standard error; escapes what is
  // not printable. (Lines of ranks are printed unchanged: their colours stay.)
  void Say(std::string_view prefix, std::string_view line);

  bool full() const { return out_->full() || err_->full(); }
  bool empty() const { return out_->empty() && err_->empty(); }
  void DropWhatDoesNotFit();
  const std::optional<Status>& file_error() const { return file_error_; }  // the first one

 private:
  void Line(int rank, bool errors, std::string_view line);

  const std::string program_;
  const LineSplitter::LineFunction on_line_of_rank_0_;

  std::shared_ptr<OutQueue> out_, err_;  // the same object if both are the same file
  std::vector<LineSplitter> lines_;  // of rank r: [2 r] standard output, [2 r + 1] standard error
  std::vector<FileDescriptor> files_;
  std::optional<Status> file_error_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_RANK_OUTPUT_H_
