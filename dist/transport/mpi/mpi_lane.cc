#include "dist/transport/mpi/mpi_lane.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "core/check.h"

namespace ringtail {
namespace {

constexpr int kChunksAhead = 2;
// Data in a chunk, by lane, and what TakeFrames may add to it: headers, control frames.
constexpr std::array<size_t, kMpiLanes> kChunkBytes = {256 << 10, 4 << 10};
constexpr size_t kFramesOverhead = 20 << 10;

Status FromMpi(const std::string& error) {
  return error.empty() ? Status() : Status(StatusCode::kUnavailable, error);
}

}  // namespace

std::span<std::byte> MpiChunk::Empty() {
  used_ = 0;
  finished_ = false;
  return {memory_.data(), memory_.size_bytes()};
}

void MpiChunk::Append(std::span<const std::byte> bytes) {
  RT_CHECK(used_ + bytes.size() <= memory_.size_bytes(), "frames fit into their chunk");
  if (!bytes.empty()) std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

Status MpiLane::Start(MpiPort* port) {
  port_ = port;
  for (int i = 0; i < 2 * kChunksAhead; ++i) {
    chunks_.push_back(std::make_unique<MpiChunk>(kChunkBytes[number_] + kFramesOverhead));
    if (i < kChunksAhead) {
      free_.push_back(chunks_.back().get());
    } else {
      RT_RETURN_IF_ERROR(Receive(chunks_.back().get()));
    }
  }
  return {};
}

Status MpiLane::Write(bool* any) {
  for (; !sending_.empty() && sending_.front()->finished(); sending_.pop_front()) {
    free_.push_back(sending_.front());
  }
  while (!free_.empty()) {
    const std::vector<OutgoingFrame> frames = messages->TakeFrames(kChunkBytes[number_]);
    if (frames.empty()) return {};
    *any = true;
    MpiChunk* const chunk = free_.back();
    free_.pop_back();
    (void)chunk->Empty();
    for (const OutgoingFrame& frame : frames) {
      chunk->Append(EncodeHeader(frame.header));
      chunk->Append(std::as_bytes(std::span(frame.control_payload)));
      chunk->Append(frame.payload);
    }
    sending_.push_back(chunk);
    RT_RETURN_IF_ERROR(FromMpi(port_->Send(peer, number_, chunk->used(), chunk)));
  }
  return {};
}

MpiChunk* MpiLane::TakeArrived() {
  if (!arriving_.front()->finished()) return nullptr;
  MpiChunk* const chunk = arriving_.front();
  arriving_.pop_front();
  return chunk;
}

Status MpiLane::Receive(MpiChunk* chunk) {
  arriving_.push_back(chunk);
  return FromMpi(port_->Receive(peer, number_, chunk->Empty(), chunk));
}

}  // namespace ringtail
