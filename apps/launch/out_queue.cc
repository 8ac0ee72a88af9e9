#include "apps/launch/out_queue.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ringtail {

void OutQueue::Append(std::string_view bytes) {
  if (broken_ || (dropping_ && full())) return;
  if (empty()) loop_->Watch(file_, POLLOUT, [this] { WriteSome(); });
  bytes_ += bytes;
}

void OutQueue::DropWhatDoesNotFit() {
  dropping_ = true;
  if (full()) done_ = bytes_.size();
}

void OutQueue::WriteSome() {
  if (!empty()) {
    const size_t wanted = std::min(bytes_.size() - done_, kPieceBytes);
    const ssize_t written = write(file_, bytes_.data() + done_, wanted);
    if (written > 0) done_ += static_cast<size_t>(written);
    broken_ = written < 0 && errno != EINTR && errno != EAGAIN;
  }
  if (broken_) done_ = bytes_.size();
  if (empty()) {
    loop_->Unwatch(file_);
    bytes_.clear();
    done_ = 0;
  } else if (done_ >= kFullBytes) {  // rarely, because it moves all remaining bytes
    bytes_.erase(0, done_);
    done_ = 0;
  }
}

}  // namespace ringtail
