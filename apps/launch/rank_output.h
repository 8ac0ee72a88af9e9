// What ranks print, line by line behind the rank's number, to our standard output and error, and to
// a file per rank if there is a folder for them:
//
//   [2] step 10 loss 0.41
//
// If our output and error are one file or terminal, they share one queue, so that lines of one
// never come into the middle of a line of the other. Thread-safety: none.
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
  RankOutput(PollLoop* loop, int world);
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  Status OpenFiles(const std::string& folder);  // rank-0.txt, ...
  void Add(int rank, bool errors, std::string_view bytes);
  void End(int rank);  // its unfinished lines
  // The launcher itself, or what a login shell or ssh says to it, on standard error; what is not
  // printable is escaped. (The ranks' own lines are passed on as they are: their colours stay.)
  void Say(std::string_view prefix, std::string_view line);

  bool full() const { return out_->full() || err_->full(); }
  bool empty() const { return out_->empty() && err_->empty(); }
  void DropWhatDoesNotFit();
  const std::optional<Status>& file_error() const { return file_error_; }  // the first one

 private:
  void Line(int rank, OutQueue* to, std::string_view line);

  std::shared_ptr<OutQueue> out_, err_;  // one and the same if they go to the same place
  std::vector<LineSplitter> lines_;      // of rank r: 2 r standard output, 2 r + 1 standard error
  std::vector<FileDescriptor> files_;
  std::optional<Status> file_error_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_RANK_OUTPUT_H_
