// StageMessages: what a stage's net exchanges with its neighbours, micro-batch by micro-batch, in the
// order of a schedule.
//
//   Before(F m)   waits for the activation of m with its labels; room for what will be sent
//   ... the net runs: its ends read and write the messages in place (layers/pipeline/stage.h) ...
//   After(F m)    sends the activation on; the slot that was read is free
//
// The first stage alone reads images and labels; labels travel with the activations, as which images
// could be read is known there only.
//
//   message forward    [ blob, padded to 64 bytes | labels N | soft? | other labels N | weights 2 N ]
//   message backward   [ blob ]
//
// Thread-safety: the trainer thread. Errors: those of the world, which is then lost.
#ifndef RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_MESSAGES_H_
#define RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_MESSAGES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/trainer/pipeline/stage_choice.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "dist/channel.h"
#include "dist/pipeline/message_stream.h"
#include "dist/pipeline/schedule.h"
#include "layers/net/net.h"
#include "layers/pipeline/stage.h"

namespace ringtail {

// A rank's place between its neighbours; outlives what it exchanges with them. All ranks make one.
class StageLink {
 public:
  StageLink(TrainingWorld* world, const StageChoice* choice)
      : world_(world), choice_(choice), channel_(world->NextChannel()), next_(world->size()) {}

  TrainingWorld* world() const { return world_; }
  const StageChoice& choice() const { return *choice_; }
  // For a stream of messages to or from another rank, or that of another stage of this pipeline.
  StreamEnd EndToRank(int rank, bool sends, size_t bytes, const char* what);
  StreamEnd EndTo(int stage, bool sends, size_t bytes, const char* what) {
    return EndToRank(choice_->RankOf(stage), sends, bytes, what);
  }

 private:
  TrainingWorld* const world_;
  const StageChoice* const choice_;
  const Channel channel_;
  // By rank: the numbers of the next messages.
  struct Numbers {
    uint64_t sent = 0, received = 0;
  };
  std::vector<Numbers> next_;
};

// One micro-batch between its forward and its backward.
struct StageBatch {
  const float* images = nullptr;  // of the first stage
  std::vector<int32_t> labels, other_labels;
  std::vector<std::array<float, 2>> weights;
  StageBoundary boundary;

  void Take(const BatchView& view);
  BatchView View() const;
};

class StageMessages {
 public:
  // Of nets whose ends are `blobs`, with `rows` images in a micro-batch. Neighbours make theirs at the
  // same time.
  StageMessages(StageLink* link, const StageBlobs& blobs, int64_t rows);

  // How many passes of each kind come next.
  void Expect(int64_t forwards, int64_t backwards);
  Status Before(const StageOperation& operation, StageBatch* batch);
  void After(const StageOperation& operation, const StageBatch& batch);

  // Until all that was sent has left this rank: before it is destroyed.
  Status Flush();

  // Since the last call: waiting for neighbours, bytes sent.
  struct Totals {
    double wait_seconds = 0;
    int64_t sent_bytes = 0;
  };
  Totals TakeTotals();

 private:
  size_t ForwardBytes(const BlobDesc& blob) const;
  void ReadLabels(std::span<const std::byte> tail, StageBatch* batch) const;
  void WriteLabels(const StageBatch& batch, std::span<std::byte> tail) const;
  Status BeforeForward(StageBatch* batch);
  Status BeforeBackward(StageBatch* batch);

  StageLink* const link_;
  const StageBlobs blobs_;
  const int64_t rows_;
  // Null where nothing travels.
  std::unique_ptr<ReceiveStream> activations_, gradients_;
  std::unique_ptr<SendStream> on_, back_;
  std::span<std::byte> sent_tail_;  // of the message that is being written: the labels
  Totals totals_;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_PIPELINE_STAGE_MESSAGES_H_
