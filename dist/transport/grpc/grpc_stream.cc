#include "dist/transport/grpc/grpc_stream.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr char kMethod[] = "/ringtail.TransportService/Exchange";

// Keeps the operation whose memory a slice refers to, until gRPC lets go of the slice.
struct PayloadReference {
  std::shared_ptr<SendOperation> memory;
  std::atomic<bool> handed_over = false;  // as in GrpcCallback
};

void LetGo(void* reference) {
  const std::unique_ptr<PayloadReference> owner(static_cast<PayloadReference*>(reference));
  RT_CHECK(owner->handed_over.load(std::memory_order_acquire), "gRPC returns what it was given");
}

grpc::Slice PayloadSlice(OutgoingFrame* frame) {
  auto reference = std::make_unique<PayloadReference>();
  reference->memory = std::move(frame->memory);
  reference->handed_over.store(true, std::memory_order_release);
  // gRPC only reads it; its slices just do not know of const.
  void* const memory = const_cast<std::byte*>(frame->payload.data());
  return {memory, frame->payload.size(), LetGo, reference.release()};
}

size_t DataBytes(const std::vector<OutgoingFrame>& frames) {
  size_t bytes = 0;
  for (const OutgoingFrame& frame : frames) bytes += frame.payload.size();
  return bytes;
}

// Headers and control payloads are copied, data is referred to.
grpc::ByteBuffer ToByteBuffer(std::vector<OutgoingFrame> frames) {
  std::vector<grpc::Slice> slices;
  std::string copied;
  const auto flush = [&] {
    if (!copied.empty()) slices.emplace_back(std::exchange(copied, {}));
  };
  for (OutgoingFrame& frame : frames) {
    const auto header = EncodeHeader(frame.header);
    copied.append(reinterpret_cast<const char*>(header.data()), header.size());
    copied.append(frame.control_payload);
    if (frame.payload.empty()) continue;
    flush();
    slices.push_back(PayloadSlice(&frame));
  }
  flush();
  return {slices.data(), slices.size()};
}

}  // namespace

void* NewGrpcTag(std::function<void(bool ok)> run) {
  auto callback = std::make_unique<GrpcCallback>();
  callback->run = std::move(run);
  callback->handed_over.store(true, std::memory_order_release);
  return callback.release();
}

void RunGrpcCallbacks(grpc::CompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    const std::unique_ptr<GrpcCallback> callback(static_cast<GrpcCallback*>(tag));
    RT_CHECK(callback->handed_over.load(std::memory_order_acquire), "gRPC returns our own tags");
    callback->run(ok);
  }
}

// ---- both ends ----------------------------------------------------------------------------------

void* GrpcStream::Tag(Handler handler) {
  return NewGrpcTag([self = shared_from_this(), handler](bool ok) { (self.get()->*handler)(ok); });
}

void GrpcStream::WriteFirst(OutgoingFrame frame) {
  {
    MutexLock lock(&mutex_);
    first_.push_back(std::move(frame));
  }
  Pump();
}

void GrpcStream::Attach(PeerMessages* messages) {
  {
    MutexLock lock(&mutex_);
    messages_ = messages;
  }
  Pump();
}

void GrpcStream::CloseAfterWriting() {
  {
    MutexLock lock(&mutex_);
    closing_ = true;
  }
  Pump();
}

void GrpcStream::Cancel() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    if (!cancellable_) return;
  }
  TryCancel();
}

void GrpcStream::CancelAfter(std::chrono::milliseconds limit) {
  MutexLock lock(&limit_mutex_);
  if (std::exchange(limited_, true)) return;
  limit_.Set(queue_, std::chrono::system_clock::now() + limit,
             NewGrpcTag([self = shared_from_this()](bool expired) {
               if (expired) self->Cancel();
             }));
}

void GrpcStream::Pump() {
  {
    MutexLock lock(&mutex_);
    wanted_ = true;
    if (!started_ || writing_ || closed_) return;
    writing_ = true;
  }
  WriteNext();
}

// Called by the thread that has set writing_. gRPC is called without the lock, because it may let
// go of slices at once, and so complete operations.
void GrpcStream::WriteNext() {
  for (;;) {
    std::vector<OutgoingFrame> frames;
    PeerMessages* messages = nullptr;
    {
      MutexLock lock(&mutex_);
      wanted_ = false;
      if (!closed_) messages = messages_;
      for (OutgoingFrame& frame : first_) frames.push_back(std::move(frame));
      first_.clear();
      if (closed_) frames.clear();
    }
    if (frames.empty() && messages != nullptr) frames = messages->TakeFrames(write_bytes_);
    if (!frames.empty()) {
      write_started_ = Clock::now();
      write_is_full_ = DataBytes(frames) >= write_bytes_ / 2;
      StartWrite(ToByteBuffer(std::move(frames)), Tag(&GrpcStream::OnWritten));
      return;
    }
    bool close = false;
    {
      MutexLock lock(&mutex_);
      if (wanted_ && !closed_) continue;
      close = closing_ && !closed_;
      if (!close) {
        writing_ = false;
        if (!peer_ended_) return;
      }
    }
    if (!close) return OnPeerEnded();
    if (!StartClose()) StopWriting();
    return;
  }
}

// For good; and does what has waited for that.
void GrpcStream::StopWriting() {
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    closed_ = true;
    if (!peer_ended_) return;
  }
  OnPeerEnded();
}

void GrpcStream::OnStarted(bool ok) {
  if (!ok) return OnPeerEnded();
  {
    MutexLock lock(&mutex_);
    started_ = cancellable_ = true;
  }
  StartRead(&incoming_, Tag(&GrpcStream::OnRead));
  Pump();
}

// A message is through when the kernel has it, which waits for the wire.
void GrpcStream::AdaptWriteBytes() {
  constexpr std::chrono::milliseconds kQuick{125}, kSlow{500};
  if (!write_is_full_) return;
  const auto took = Clock::now() - write_started_;
  if (took < kQuick) write_bytes_ = std::min(2 * write_bytes_, kWriteBytes);
  if (took > kSlow) write_bytes_ = std::max(write_bytes_ / 2, kLeastWriteBytes);
}

void GrpcStream::OnWritten(bool ok) {
  AdaptWriteBytes();
  if (ok) return WriteNext();
  StopWriting();  // it is broken, and the read under way will say so
}

void GrpcStream::OnClosed(bool /*ok*/) { StopWriting(); }

void GrpcStream::OnRead(bool ok) {
  if (ok) {
    Deliver();
    StartRead(&incoming_, Tag(&GrpcStream::OnRead));
    return;
  }
  {
    MutexLock lock(&mutex_);
    closed_ = peer_ended_ = true;
    if (writing_) return;
  }
  OnPeerEnded();
}

void GrpcStream::Deliver() {
  std::vector<grpc::Slice> slices;
  const bool readable = incoming_.Dump(&slices).ok();
  incoming_.Clear();
  if (!readable) return Cancel();
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    pieces.push_back({reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
  }
  ByteCursor cursor(pieces);
  observer_->OnMessage(this, &cursor);
}

void GrpcStream::End() {
  {
    MutexLock lock(&limit_mutex_);
    if (std::exchange(limited_, true)) limit_.Cancel();
  }
  observer_->OnEnd(this, Reason());
}

// ---- the end that dials -------------------------------------------------------------------------

DialledStream::DialledStream(std::shared_ptr<grpc::Channel> channel, grpc::CompletionQueue* queue,
                             Observer* observer)
    : GrpcStream(queue, observer, true), channel_(std::move(channel)) {
  context_.set_wait_for_ready(true);  // the peer may not listen yet
  call_ = grpc::GenericStub(channel_).PrepareCall(&context_, kMethod, queue_);
}

void DialledStream::Start() { call_->StartCall(Tag(&DialledStream::OnStarted)); }

bool DialledStream::StartClose() {
  call_->WritesDone(Tag(&DialledStream::OnClosed));
  return true;
}

void DialledStream::OnPeerEnded() {
  call_->Finish(&status_, NewGrpcTag([self = shared_from_this(), this](bool) { End(); }));
}

// ---- the end that is dialled --------------------------------------------------------------------

void AcceptedStream::Accept(RawService* service, std::function<void(bool ok)> on_dialled) {
  service->RequestExchange(
      &context_, &call_, queue_, server_queue_,
      NewGrpcTag([self = shared_from_this(), this, on_dialled = std::move(on_dialled)](bool ok) {
        on_dialled(ok);
        if (ok) OnStarted(true);
      }));
}

void AcceptedStream::LimitGreeting(std::chrono::system_clock::time_point deadline) {
  alarm_.Set(queue_, deadline, NewGrpcTag([self = shared_from_this(), this](bool expired) {
               if (expired && !greeted) Cancel();
             }));
}

void AcceptedStream::Finish(const grpc::Status& status) {
  if (finished_.exchange(true)) return;
  call_.Finish(status, NewGrpcTag([self = shared_from_this()](bool) {}));
}

void AcceptedStream::Refuse(const std::string& why) {
  Finish(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, why));
}

void AcceptedStream::OnPeerEnded() {
  EndLimit();
  Finish(grpc::Status::OK);
  End();
}

}  // namespace ringtail
