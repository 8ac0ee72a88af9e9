// WorkerCompression: gradients (dist.compression) or differences (dist.local.compression) of virtual
// workers through codecs, as those of real ranks.
//
//   worker 0   gradients + residual --encode--> payload --.
//   worker 1   gradients + residual --encode--> payload ---+--> the sum that all decode
//
// Each worker has a CompressedReducer of its own, with its residuals; they exchange over an
// in-process world, a thread for each, so that sums have the bits of a real run with these routes.
// Virtual time is not theirs: item_list.h has what travels, and when.
// When the workers change, those that stay keep the residuals of what they offer; residuals of
// sums that they made for others are lost. (Real ranks end then, and resume from a checkpoint.) What
// is the same on all ranks, those that join have from the others.
// A worker that is alone codes nothing, as a rank alone: of use is only the momentum that dgc keeps.
// Thread-safety: the trainer thread. Cost: real coding, of every worker. Memory: residuals.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_WORKER_COMPRESSION_H_
#define RINGTAIL_APPS_EMULATOR_RULES_WORKER_COMPRESSION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/emulator/clock/exchange_items.h"
#include "apps/emulator/emulated_job.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/communicator.h"
#include "dist/compression/compressed_reducer.h"

namespace ringtail {

class WorkerCompression {
 public:
  struct Member {
    int worker = 0;
    ParameterArena* arena = nullptr;  // its gradients are what is added up
  };

  // `job` must outlive it.
  WorkerCompression(EmulatedJob* job, CodedKind kind) : job_(job), kind_(std::move(kind)) {}

  // Of workers that exchange; all dense for one.
  CodedLayers LayersOf(const std::vector<int>& workers) const;
  // In the order of ranks: replaces what they offer by the sum that every rank decodes.
  Status Reduce(const ExchangeTime& time, std::span<const Member> members);
  // By all members of the last Reduce.
  int64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Rank {
    int worker = 0;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<CompressedReducer> reducer;
    bool carries_over = false;  // state of other workers' rounds, which its layers may not fit
  };

  Status Seat(std::span<const Member> members);
  Status ReduceOwn(const ExchangeTime& time, Rank* rank, ParameterArena* arena) const;

  EmulatedJob* const job_;
  const CodedKind kind_;
  std::vector<Rank> ranks_;  // of the last Reduce
  int64_t sent_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_WORKER_COMPRESSION_H_
