// CompressedReducer: reduces a bucket of gradients in fewer bytes, layer by layer as their schemes
// say.
//
//   bucket    [ fc.weight | fc.bias | bn.weight | conv5.weight | conv4.weight ]
//               two bits    dense     dense       PowerSGD       two bits
//                  |           `---------+----------'               |
//                  |               one allreduce                    |       summed_exchange.h
//                  `----------------------+-------------------------'
//                               one exchange of payloads                    payload_exchange.h
//
// The result is the same bits on all ranks; the residual, what a rank has not sent, is its own.
// What is kept between steps is in LayerMemories, what it makes of an older run's state in
// CarryOver, and DirectionGuard watches what compression costs.
// Thread-safety: Reduce on the communication thread, the rest on the trainer thread while no bucket
// is under way. Memory: that of LayerMemories.
#ifndef RINGTAIL_DIST_COMPRESSION_COMPRESSED_REDUCER_H_
#define RINGTAIL_DIST_COMPRESSION_COMPRESSED_REDUCER_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/parameter.h"
#include "core/status.h"
#include "dist/compression/carry_over.h"
#include "dist/compression/compression.pb.h"
#include "dist/compression/direction_guard.h"
#include "dist/compression/exchange/payload_exchange.h"
#include "dist/compression/exchange/summed_exchange.h"
#include "dist/compression/layer_scheme.h"
#include "dist/compression/memory/layer_memories.h"
#include "dist/compression/state_block.h"
#include "dist/gradients/bucket_reducer.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

class CompressedReducer : public BucketReducer {
 public:
  struct Options {
    uint64_t seed = 0;
    double dense_epochs = 0;        // before these have passed, nothing is compressed
    int64_t guard_every_steps = 0;  // 0: never
    LayerMemoryOptions memory;
  };

  // `layers`: one per parameter of the arena. `buckets`: of its gradients. `arena` must outlive it.
  CompressedReducer(const ParameterArena* arena, std::span<const GradientBucket> buckets,
                    std::vector<CompressedLayer> layers, const Options& options);

  // After state() was filled from a checkpoint; needs options.memory.carries_over. All ranks.
  Status StartCarryOver(Communicator* ranks) { return carry_over_.Start(ranks); }

  // `batches`: EncodeContext::batches; the same on all ranks.
  void BeginStep(int64_t step, double epoch, int64_t batches = 1);
  Status Reduce(Communicator* ranks, size_t bucket, std::span<float> gradients) override;
  void EndStep() { in_step_ = false; }
  // Whether a bucket has been reduced since the last EndStep: state() is then between two steps.
  bool in_step() const { return in_step_; }

  // Both since the last call.
  CodingTimes TakeTimes() { return payloads_.TakeTimes(); }
  std::vector<DirectionReading> TakeReadings() { return guard_.TakeReadings(); }

  std::vector<StateBlock> state() const;
  std::span<const CompressedLayer> layers() const { return layers_; }

 private:
  struct Bucket {
    ElementRange range;
    bool compressed = false;
    std::vector<SummedGradient> summed;  // dense layers and sketches
    std::vector<CodedGradient> gathered, sharded;
    std::vector<size_t> parameters;
  };

  void Place(size_t parameter, Bucket* bucket);
  // Those of `from` that are due in this step, with its context. The others go into their memory,
  // and become zero.
  template <typename Gradient>
  std::span<Gradient> TakeDue(std::span<const Gradient> from, std::vector<Gradient>* due) const;
  bool IsDue(size_t parameter) const { return layers_[parameter].scheme.IsDue(step_, parameter); }
  // Of a bucket with compressed layers, after warm-up.
  Status ReduceCompressed(Communicator* ranks, size_t index, std::span<float> gradients);
  void Compare(const Bucket& bucket, std::span<const float> dense);

  const ParameterArena* const arena_;
  const Options options_;
  const std::vector<CompressedLayer> layers_;
  LayerMemories memories_;
  CarryOver carry_over_;
  DirectionGuard guard_;
  std::vector<Bucket> buckets_;
  std::vector<SummedGradient> due_sums_;  // of this bucket and step
  std::vector<CodedGradient> due_payloads_;
  SummedExchange sums_;
  PayloadExchange payloads_;
  std::atomic<bool> in_step_{false};
  int64_t step_ = 0;
  double epoch_ = 0, batches_ = 1;
};

// Everything but the seed, and whether older state is carried over. `samples`: in a step of one
// batch, on all ranks; clip_norm of a config applies to means over them.
CompressedReducer::Options ReducerOptions(const CompressionConfig& config, int rank, int world,
                                          double samples);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_COMPRESSED_REDUCER_H_
