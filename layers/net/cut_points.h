// Where a net may be cut in two, so that two processes compute its halves: after nodes behind which
// exactly one blob crosses, which is then that node's dst.
//
//   conv1 -> bn1 -> pool -+-> conv2 -> bn2 -> add -+-> conv3 -> ...
//                   |     `--------------------^   |
//                   one blob                       one blob (read twice); between the two there are two
//
// A cut beside a batch norm that is the only reader of its input, or is read by one node alone, is
// one that `parts_batch_norm`: in one process these neighbours share work (layers/fusion.h), so that
// cut there the results differ in rounding, and blobs are written that would not be. Everywhere else
// the halves compute the bits of the whole.
// Thread-safety: functions without state. Cost: O(edges).
#ifndef RINGTAIL_LAYERS_NET_CUT_POINTS_H_
#define RINGTAIL_LAYERS_NET_CUT_POINTS_H_

#include <cstdint>
#include <vector>

#include "layers/blob.h"
#include "layers/net/net.h"

namespace ringtail {

class Graph;

struct CutPoint {
  int node = 0;               // the last one before the cut
  BlobDesc blob;              // what crosses: the shape of a batch, f32 or bf16
  bool has_gradient = false;  // of the blob, back: something before the cut trains
  bool parts_batch_norm = false;

  // On the wire: row-major, without the padding channels of a layout in blocks.
  int64_t bytes() const { return blob.N * blob.C * blob.H * blob.W * BytesPerElement(blob.type); }
};

// By the graph alone, first to last.
std::vector<int> NodesToCutAfter(const Graph& graph);
bool PartsBatchNorm(const Graph& graph, int node);

// The same with the blobs of a net of `model`, planned or not.
std::vector<CutPoint> FindCutPoints(const Model& model, const Net& net);

// The nodes first .. last, which are a stage, or a part of one.
struct NetSegment {
  int first = 0, last = 0;
  int64_t trained_bytes = 0;  // weights that train; their gradients take as many once more
  int64_t fixed_bytes = 0;    // running statistics, and what is frozen
  int64_t kept_bytes = 0;     // of a batch: what forward keeps for backward (stage_memory.h)
};
NetSegment DescribeSegment(const Model& model, const Net& net, int first, int last);

}  // namespace ringtail

#endif  // RINGTAIL_LAYERS_NET_CUT_POINTS_H_
