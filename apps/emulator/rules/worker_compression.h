// RoundCompression: the differences of virtual workers through the codecs of dist.local.compression,
// as those of real ranks.
//
//   worker 0   differences + residual --encode--> payload --.
//   worker 1   differences + residual --encode--> payload ---+--> the sum that all decode
//
// Each worker has a CompressedReducer of its own, with its residuals; they exchange over an
// in-process world, a thread for each, so that sums have the bits of a real run with these routes.
// Virtual time is not theirs: round_items.h has what travels, and when.
// When the workers change, those that stay keep the residuals of their own differences; residuals of
// sums that they made for others are lost. (Real ranks end then, and resume from a checkpoint.)
// Thread-safety: the trainer thread. Cost: real coding, of every worker. Memory: residuals.
#ifndef RINGTAIL_APPS_EMULATOR_RULES_ROUND_COMPRESSION_H_
#define RINGTAIL_APPS_EMULATOR_RULES_ROUND_COMPRESSION_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "apps/emulator/clock/coded_layers.h"
#include "apps/emulator/clock/round_items.h"
#include "apps/emulator/emulated_job.h"
#include "apps/trainer/local/local_round.h"
#include "core/status.h"
#include "dist/communicator.h"
#include "dist/compression/compressed_reducer.h"

namespace ringtail {

class RoundCompression {
 public:
  struct Member {
    int worker = 0;
    LocalRound* local = nullptr;
  };

  // `job` must outlive it.
  explicit RoundCompression(EmulatedJob* job) : job_(job) {}

  // Of workers that exchange.
  CodedLayers LayersOf(const std::vector<int>& workers) const;
  // After LocalRound::Take of all members, at least two, in the order of ranks: replaces what they
  // offer by the sum that every rank decodes.
  Status Reduce(const RoundOfItems& round, std::span<const Member> members);
  // By all members of the last Reduce.
  int64_t sent_bytes() const { return sent_bytes_; }

 private:
  struct Rank {
    int worker = 0;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<CompressedReducer> reducer;
  };

  Status Seat(std::span<const Member> members);
  Status ReduceOwn(const RoundOfItems& round, const Rank& rank, LocalRound* local) const;

  EmulatedJob* const job_;
  std::vector<Rank> ranks_;  // of the last Reduce
  int64_t sent_bytes_ = 0;
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_EMULATOR_RULES_ROUND_COMPRESSION_H_
