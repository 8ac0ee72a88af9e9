// Bytes on their way to a file that may be slow to take them (a terminal that is held, a pager, a
// network): appending never blocks, so that signals and deadlines are served meanwhile. Whoever
// feeds the queue stops reading its own sources while `full()`.
//
// The file stays in blocking mode, since its mode is shared with whoever else has it open. A file
// that poll calls writable takes at least kPieceBytes without blocking if it is a pipe, so no more
// is written at a time. Thread-safety: none.
#ifndef RINGTAIL_APPS_LAUNCH_OUT_QUEUE_H_
#define RINGTAIL_APPS_LAUNCH_OUT_QUEUE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "apps/launch/poll_loop.h"

namespace ringtail {

class OutQueue {
 public:
  static constexpr size_t kPieceBytes = 4096;  // PIPE_BUF of Linux
  static constexpr size_t kFullBytes = 1 << 20;

  OutQueue(PollLoop* loop, int file) : loop_(loop), file_(file) {}
  ~OutQueue() { loop_->Unwatch(file_); }
  OutQueue(const OutQueue&) = delete;
  OutQueue& operator=(const OutQueue&) = delete;

  void Append(std::string_view bytes);  // forgotten if the reader is gone
  bool empty() const { return done_ == bytes_.size(); }
  bool full() const { return bytes_.size() - done_ >= kFullBytes; }
  bool broken() const { return broken_; }  // the reader is gone
  // Forgets what waits, and from now on what comes while the queue is full.
  void DropWhatDoesNotFit();

 private:
  void WriteSome();

  PollLoop* const loop_;
  const int file_;
  std::string bytes_;
  size_t done_ = 0;
  bool broken_ = false, dropping_ = false;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_LAUNCH_OUT_QUEUE_H_
