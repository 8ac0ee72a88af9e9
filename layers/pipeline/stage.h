// A stage: a run of a net's nodes that one process computes, between others that compute the rest.
//
//   received -> [ first ... last ] -> sent                       forward, to the next stage
//   sent     <- [ first ... last ] <- received                   backward, to the previous one
//
// A Model made for a StageRequest (layers/net/model.h) has the parameters of its nodes alone, and its
// nets have a layer before the first node that takes what the stage before has sent, and one behind
// the last node that hands on (layers/pipeline/boundary_layers.h). Who moves the bytes fills in a
// StageBoundary before each pass; layers only read and write its memory.
//
// On the way a blob lies as in memory: its layout with padding channels, or, where `wire` says so,
// the same rounded to bf16. Both ends must have the same layout (Net::boundaries).
// Thread-safety: values.
#ifndef RINGTAIL_LAYERS_PIPELINE_STAGE_H_
#define RINGTAIL_LAYERS_PIPELINE_STAGE_H_

#include <cstddef>
#include <optional>

#include "layers/blob.h"

namespace ringtail {

// Of the graph's nodes, in their order. The net may be cut before `first` and after `last`
// (layers/net/cut_points.h).
struct StageRequest {
  int first = 0, last = -1;      // -1: all of them
  std::optional<BlobType> wire;  // what crosses; without: blobs as they are

  bool is_whole() const { return last < 0; }
};

// Memory for what crosses in a pass. Null where nothing does: before the first stage, after the last
// one, and gradients to stages in which nothing learns.
struct StageBoundary {
  const std::byte* received = nullptr;           // forward: from the stage before
  std::byte* sent = nullptr;                     // forward: to the next stage
  const std::byte* received_gradient = nullptr;  // backward: from the next stage
  std::byte* sent_gradient = nullptr;            // backward: to the stage before
};

// What crosses at either end of a stage, of a batch; nothing: the net begins or ends there.
struct StageBlobs {
  std::optional<BlobDesc> received, sent;  // in the type of the wire
  bool gradient_sent = false;              // back: something before the stage learns
  bool gradient_received = false;          // something up to the stage's end does
};

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_PIPELINE_STAGE_H_
