// A queue of bytes for a file that may accept them slowly (a paused terminal, a pager, a network).
// Appending never blocks, so that signals and deadlines are served meanwhile. Callers stop reading
// their own sources while the queue is `full()`.
//
// The file stays in blocking mode, because other processes that have it open share its mode. A pipe
// that poll reports as writable accepts at least kPieceBytes without blocking, so no more is
// written at a time. Thread-safety: none.
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

  void Append(std::string_view bytes);  // dropped if the reader has closed the file
  bool empty() const { return done_ == bytes_.size(); }
  bool full() const { return bytes_.size() - done_ >= kFullBytes; }
  bool broken() const { return broken_; }  // the reader has closed the file
  // Drops the bytes of a full queue, and from now on bytes appended to a full queue.
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
