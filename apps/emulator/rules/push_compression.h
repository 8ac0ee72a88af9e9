// PushCompression: the gradients of one virtual worker through dist.compression, on their way to
// servers.
//
//   gradient + residual --encode--> payload --> servers decode it: what replaces the gradient
//
// No other worker's payload is added to it: the worker is a CompressedReducer's world of one, so that
// every codec, sketch and memory is that of synchronous training, and so are random choices, which
// follow the worker and its pushes. Payloads that all ranks would vote on (sign_vote) are its own.
// A layer travels uncompressed where coding takes longer than it saves (fall_back), by the script's
// times and the network between hosts.
// Thread-safety: the trainer thread. Cost: real coding. Memory: residuals, of the model's size.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_PUSH_COMPRESSION_H_
#define RINGTAIL_APPS_EMULATOR_RULES_PUSH_COMPRESSION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/emulator/emulated_job.h"
#include "core/status.h"
#include "dist/communicator.h"
#include "dist/compression/compressed_reducer.h"
#include "dist/transport/transport.h"

namespace ringtail {

class PushCompression {
 public:
  // `job` must outlive it.
  static StatusOr<std::unique_ptr<PushCompression>> Create(EmulatedJob* job, int worker);

  // Replaces the gradients in the job's arena by what servers will decode.
  Status Code(double epoch);
  // What the last push, of all these parameters, takes on the wire.
  int64_t BytesOf(std::span<const size_t> parameters) const;

 private:
  PushCompression(EmulatedJob* job, int worker);

  EmulatedJob* const job_;
  const double dense_epochs_;
  std::vector<std::unique_ptr<Transport>> world_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<CompressedReducer> reducer_;
  int64_t pushes_ = 0;
  double epoch_ = 0;  // of the last push
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_PUSH_COMPRESSION_H_
