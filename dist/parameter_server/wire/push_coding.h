// PushCoding: how a gradient travels to the server of a shard: each parameter by its scheme
// (dist/compression/), one payload after the other, at multiples of 8 bytes.
//
//   model's gradient   | conv2.weight | bn.weight | ...        worker, with what it has not sent yet
//                         two bits      as floats
//   bytes              | payload      | floats    | ...        of one length, the same at both ends
//   shard's gradient   | conv2.weight | bn.weight | ...        server
//
// Schemes are codecs: sketches need all ranks, and one that keeps the momentum (dgc) an optimizer
// that has none. Warm-ups count as over. The payload of a gradient is a function of (seed, worker,
// number of the push).
// Errors of Decode: DataLoss if a payload is none, and the gradient is then undefined.
// Thread-safety: const, but for the memories. Cost: that of the codecs.
#ifndef RINGTAIL_DIST_PARAMETER_SERVER_WIRE_PUSH_CODING_H_
#define RINGTAIL_DIST_PARAMETER_SERVER_WIRE_PUSH_CODING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "core/status.h"
#include "dist/compression/compression.pb.h"
#include "dist/compression/layer_scheme.h"
#include "dist/compression/memory/layer_memories.h"

namespace ringtail {

// The schemes of all parameters of a model. `samples`: images of a push.
StatusOr<std::vector<CompressedLayer>> PushLayers(const CompressionConfig& config,
                                                  std::span<const Parameter> model, double samples);

class PushCoding {
 public:
  // A parameter of the shard: where its gradient begins in the model's block and in the shard's.
  struct Place {
    size_t parameter = 0;
    int64_t model_offset = 0, own_offset = 0;
  };
  // `layers` and `model` are of all parameters, and must outlive it.
  PushCoding(std::span<const CompressedLayer> layers, std::span<const Parameter> model,
             const std::vector<Place>& places, uint64_t seed);

  size_t bytes() const { return bytes_; }
  void Encode(int worker, int64_t push, std::span<const float> model, const LayerMemories& memories,
              std::span<std::byte> payload) const;
  // Replaces the shard's gradient, of which the gaps stay as they are.
  Status Decode(int worker, int64_t push, std::span<const std::byte> payload,
                std::span<float> own) const;

 private:
  struct Piece {
    const Codec* codec = nullptr;  // null: floats
    Place place;
    EncodeContext context;  // but for worker and push
    size_t elements = 0, begin = 0, bytes = 0;
  };
  static EncodeContext ContextOf(const Piece& piece, int worker, int64_t push);

  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_PARAMETER_SERVER_WIRE_PUSH_CODING_H_
