// PushCompression: the gradients of one virtual worker through dist.compression, on their way to
// servers.
//
//   gradient + residual --encode--> payload --> servers decode it: what replaces the gradient
//
// Schemes, residuals, payloads and refusals are those of real pushes (PushLayers, PushCoding): every
// layer that has a scheme is coded in every push, however long coding takes (no fall_back, no
// dense_epochs, warm-ups count as over), and no other worker's payload is added to it.
// Thread-safety: the trainer thread. Cost: real coding. Memory: residuals, of the model's size, and
// a payload.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_PUSH_COMPRESSION_H_
#define RINGTAIL_APPS_EMULATOR_RULES_PUSH_COMPRESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/emulator/emulated_job.h"
#include "core/status.h"
#include "dist/compression/memory/layer_memories.h"
#include "dist/parameter_server/wire/push_coding.h"

namespace ringtail {

class PushCompression {
 public:
  // `servers`: the parameters of each. `job` must outlive it. Errors: PushLayers'.
  static StatusOr<std::unique_ptr<PushCompression>> Create(
      EmulatedJob* job, int worker, std::span<const std::span<const size_t>> servers);

  // Replaces the gradients in the job's arena by what servers will decode.
  Status Code();
  // Of each push on the wire.
  int64_t BytesTo(size_t server) const { return static_cast<int64_t>(codings_[server].bytes()); }

 private:
  PushCompression(EmulatedJob* job, int worker, std::vector<CompressedLayer> layers,
                  std::span<const std::span<const size_t>> servers);

  EmulatedJob* const job_;
  const int worker_;
  const std::vector<CompressedLayer> layers_;
  const LayerMemories memories_;
  std::vector<PushCoding> codings_;  // by server
  std::vector<std::byte> payload_;
  int64_t pushes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_PUSH_COMPRESSION_H_
