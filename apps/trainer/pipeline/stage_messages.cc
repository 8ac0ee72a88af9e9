#include "apps/trainer/pipeline/stage_messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/round.h"
#include "core/stopwatch.h"
#include "core/trace.h"

namespace ringtail {
namespace {

constexpr size_t kAlignment = 64;

size_t BlobBytes(const BlobDesc& blob) {
  return RoundUp(static_cast<size_t>(blob.bytes()), kAlignment);
}

// What both ends must mean by a message: of one size in other blocks, channels would be in other places.
std::string NameOf(const char* what, const BlobDesc& blob) {
  return fmt::format("{} in blocks of {} channels, {}", what, blob.block, BlobTypeName(blob.type));
}

// Copies a vector out of bytes, or into them, and leaves what follows.
template <typename T>
void Read(std::span<const std::byte>* from, size_t count, std::vector<T>* to) {
  to->resize(count);
  std::memcpy(to->data(), from->data(), count * sizeof(T));
  *from = from->subspan(count * sizeof(T));
}
template <typename T>
void Write(const std::vector<T>& from, std::span<std::byte>* to) {
  std::memcpy(to->data(), from.data(), from.size() * sizeof(T));
  *to = to->subspan(from.size() * sizeof(T));
}

}  // namespace

StreamEnd StageLink::EndToRank(int rank, bool sends, size_t bytes, const char* what) {
  return {.transport = world_->transport(),
          .peer = rank,
          .channel = channel_,
          .next = sends ? &next_[rank].sent : &next_[rank].received,
          .bytes = bytes,
          .what = what,
          .moved = world_->Moved()};
}

void StageBatch::Take(const BatchView& view) {
  images = view.images;
  labels.assign(view.labels.begin(), view.labels.end());
  other_labels.assign(view.soft.other_labels.begin(), view.soft.other_labels.end());
  weights.assign(view.soft.weights.begin(), view.soft.weights.end());
}

BatchView StageBatch::View() const {
  return {.images = images,
          .labels = labels,
          .soft = {.other_labels = other_labels, .weights = weights}};
}

StageMessages::StageMessages(StageLink* link, const StageBlobs& blobs, int64_t rows)
    : link_(link), blobs_(blobs), rows_(rows) {
  const int stage = link->choice().stage;
  const auto gradient_bytes = [](const BlobDesc& blob) {
    return static_cast<size_t>(blob.bytes());
  };
  if (blobs.received) {
    activations_ =
        std::make_unique<ReceiveStream>(link->EndTo(stage - 1, false, ForwardBytes(*blobs.received),
                                                    NameOf("activation", *blobs.received).c_str()));
    if (blobs.gradient_sent) {
      back_ = std::make_unique<SendStream>(link->EndTo(
          stage - 1, true, gradient_bytes(*blobs.received), "gradient of an activation"));
    }
  }
  if (!blobs.sent) return;
  on_ = std::make_unique<SendStream>(link->EndTo(stage + 1, true, ForwardBytes(*blobs.sent),
                                                 NameOf("activation", *blobs.sent).c_str()));
  if (blobs.gradient_received) {
    gradients_ = std::make_unique<ReceiveStream>(
        link->EndTo(stage + 1, false, gradient_bytes(*blobs.sent), "gradient of an activation"));
  }
}

// Labels, whether they are soft, other labels, weights.
size_t StageMessages::ForwardBytes(const BlobDesc& blob) const {
  return BlobBytes(blob) + sizeof(int32_t) + rows_ * (2 * sizeof(int32_t) + 2 * sizeof(float));
}

void StageMessages::Expect(int64_t forwards, int64_t backwards) {
  if (activations_) activations_->Expect(forwards);
  if (gradients_) gradients_->Expect(backwards);
}

Status StageMessages::Before(const StageOperation& operation, StageBatch* batch) {
  const Stopwatch watch;
  const ScopedSpan span("wait for neighbour", "pipeline");
  Status there = link_->world()->Run([&](Communicator*) {
    return operation.pass == PassKind::kForward ? BeforeForward(batch) : BeforeBackward(batch);
  });
  totals_.wait_seconds += watch.Seconds();
  return there;
}

Status StageMessages::BeforeForward(StageBatch* batch) {
  if (activations_) {
    RT_ASSIGN_OR_RETURN(const std::span<const std::byte> message, activations_->Next());
    batch->boundary.received = message.data();
    ReadLabels(message.subspan(BlobBytes(*blobs_.received)), batch);
  }
  if (!on_) return OkStatus();
  RT_ASSIGN_OR_RETURN(const std::span<std::byte> room, on_->Room());
  batch->boundary.sent = room.data();
  sent_tail_ = room.subspan(BlobBytes(*blobs_.sent));
  return OkStatus();
}

Status StageMessages::BeforeBackward(StageBatch* batch) {
  if (gradients_) {
    RT_ASSIGN_OR_RETURN(const std::span<const std::byte> message, gradients_->Next());
    batch->boundary.received_gradient = message.data();
  }
  if (!back_) return OkStatus();
  RT_ASSIGN_OR_RETURN(const std::span<std::byte> room, back_->Room());
  batch->boundary.sent_gradient = room.data();
  return OkStatus();
}

void StageMessages::After(const StageOperation& operation, const StageBatch& batch) {
  const bool forward = operation.pass == PassKind::kForward;
  ReceiveStream* const received = (forward ? activations_ : gradients_).get();
  SendStream* const sent = (forward ? on_ : back_).get();
  if (received != nullptr) received->Release();
  if (sent == nullptr) return;
  if (forward) WriteLabels(batch, sent_tail_);
  sent->Send();
  totals_.sent_bytes +=
      forward ? static_cast<int64_t>(ForwardBytes(*blobs_.sent)) : blobs_.received->bytes();
}

void StageMessages::ReadLabels(std::span<const std::byte> tail, StageBatch* batch) const {
  std::vector<int32_t> soft;
  Read(&tail, rows_, &batch->labels);
  Read(&tail, 1, &soft);
  const size_t soft_rows = soft[0] != 0 ? rows_ : 0;
  Read(&tail, soft_rows, &batch->other_labels);
  Read(&tail, soft_rows, &batch->weights);
}

void StageMessages::WriteLabels(const StageBatch& batch, std::span<std::byte> tail) const {
  Write(batch.labels, &tail);
  Write(std::vector<int32_t>{batch.other_labels.empty() ? 0 : 1}, &tail);
  Write(batch.other_labels, &tail);
  Write(batch.weights, &tail);
}

Status StageMessages::Flush() {
  return link_->world()->Run([&](Communicator*) -> Status {
    if (on_) RT_RETURN_IF_ERROR(on_->Flush());
    return back_ ? back_->Flush() : OkStatus();
  });
}

StageMessages::Totals StageMessages::TakeTotals() { return std::exchange(totals_, {}); }

}  // namespace ringtail
