#include "dist/transport/grpc/stream_table.h"

#include <chrono>
#include <numeric>
#include <utility>

#include "core/stop_signal.h"

namespace ringtail {

StreamTable::StreamTable(std::vector<int> streams)
    : expected_(std::move(streams)),
      expected_streams_(std::accumulate(expected_.begin(), expected_.end(), 0)),
      links_(expected_.size()) {}

void StreamTable::Remember(const Stream& stream) {
  MutexLock lock(&mutex_);
  std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
  streams_.push_back(stream);
}

StreamTable::Vacancy StreamTable::Look(int peer, bool urgent) const {
  MutexLock lock(&mutex_);
  if (closing_) return Vacancy::kClosing;
  return At(peer, urgent) == nullptr ? Vacancy::kFree : Vacancy::kTaken;
}

bool StreamTable::Admit(const Stream& stream) {
  MutexLock lock(&mutex_);
  Links& links = links_[stream->peer];
  (stream->urgent ? links.urgent : links.bulk) = stream;
  ++greeted_;
  changed_.NotifyAll();
  return !closing_;
}

StreamTable::Stream StreamTable::Find(int peer, bool urgent) const {
  MutexLock lock(&mutex_);
  return At(peer, urgent);
}

bool StreamTable::AwaitAll(Deadline deadline) {
  MutexLock lock(&mutex_);
  while (!closing_ && greeted_ < expected_streams_ && StopSignal() == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    changed_.WaitUntil(&mutex_, NextLookForStop(deadline));
  }
  return !closing_ && greeted_ == expected_streams_;
}

bool StreamTable::Complete(int peer) const {
  const int connected =
      (links_[peer].bulk != nullptr ? 1 : 0) + (links_[peer].urgent != nullptr ? 1 : 0);
  return connected == expected_[peer];
}

std::vector<int> StreamTable::Missing() const {
  MutexLock lock(&mutex_);
  std::vector<int> missing;
  for (int peer = 0; peer < static_cast<int>(links_.size()); ++peer) {
    if (!Complete(peer)) missing.push_back(peer);
  }
  return missing;
}

std::vector<StreamTable::Stream> StreamTable::StartClosing() {
  MutexLock lock(&mutex_);
  closing_ = true;
  changed_.NotifyAll();
  std::vector<Stream> streams;
  for (const bool urgent : {true, false}) {
    for (int peer = 0; peer < static_cast<int>(links_.size()); ++peer) {
      if (At(peer, urgent) != nullptr) streams.push_back(At(peer, urgent));
    }
  }
  return streams;
}

void StreamTable::OnEnd() {
  MutexLock lock(&mutex_);
  ++ended_;
  changed_.NotifyAll();
}

std::vector<StreamTable::Stream> StreamTable::AwaitEnd(Deadline deadline) {
  std::vector<Stream> streams;
  std::vector<Links> links(expected_.size());  // destroyed without the lock
  MutexLock lock(&mutex_);
  bool in_time = true;
  while (in_time && ended_ < greeted_) in_time = changed_.WaitUntil(&mutex_, deadline);
  links.swap(links_);
  for (const auto& weak : streams_) {
    if (Stream stream = weak.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

}  // namespace ringtail
