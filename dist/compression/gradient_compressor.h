// GradientCompressor: reduces a bucket of gradients in fewer bytes, layer by layer as their schemes
// say.
//
//   bucket    [ fc.weight | fc.bias | bn.weight | conv5.weight | conv4.weight ]
//               two bits    dense     dense       PowerSGD       two bits
//                  |           `---------+----------'               |
//                  |               one allreduce                    |
//                  `----------------------+-------------------------'
//                               one exchange of payloads
//
// What the ranks make of it is the same bits on all; what each has not sent yet is its own.
// Thread-safety: BeginStep and the rest on the trainer thread while no bucket is under way, Reduce
// on the communication thread. Memory: a block of the gradients' size for what has not been sent,
// another for momentum (Deep Gradient Compression) and for sums that are sent in parts.
#ifndef RINGTAIL_DIST_COMPRESSION_GRADIENT_COMPRESSOR_H_
#define RINGTAIL_DIST_COMPRESSION_GRADIENT_COMPRESSOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/parameter.h"
#include "core/status.h"
#include "dist/compression/exchange/payload_exchange.h"
#include "dist/compression/exchange/summed_exchange.h"
#include "dist/compression/layer_scheme.h"
#include "dist/compression/memory/momentum_memory.h"
#include "dist/gradients/bucket_reducer.h"
#include "dist/gradients/gradient_buckets.h"

namespace ringtail {

// What the guard has seen of one layer.
struct DirectionReading {
  size_t parameter = 0;
  double cosine = 0;  // between the sum as compressed and as it would be
  double unsent = 0;  // L2 norm of what a rank has not sent, times ranks, in L2 norms of the sum
};

class GradientCompressor : public BucketReducer {
 public:
  struct Options {
    int rank = 0, world = 1;
    uint64_t seed = 0;
    double dense_epochs = 0;        // before which nothing is compressed
    int64_t guard_every_steps = 0;  // 0: never
    // The optimizer has no momentum, since a scheme keeps it: layers of other schemes get theirs
    // here, and so do all if it is the scheme of none.
    bool keeps_momentum = false;
    MomentumMemoryOptions momentum;
    double clip_norm = MomentumMemory::kNoClipping;  // of layers with MemoryKind::kMomentum
  };
  // Whether a layer's payloads are exchanged in parts (payload_exchange.h).
  struct Layer {
    LayerScheme scheme;
    bool sharded = false;
  };
  static constexpr char kUnsent[] = "unsent", kUnsentSums[] = "unsent_sums";
  // A block of what is to be kept between steps, of the layout of the gradients.
  struct StateBlock {
    std::string name;
    std::span<float> values;
    bool own = false;  // this rank's, the sum over the ranks counts; else the same on all
  };

  // `layers` are those of the arena's parameters, `buckets` those of its gradients. `takes_over`:
  // state() is to be filled from a checkpoint.
  GradientCompressor(const ParameterArena* arena, std::span<const GradientBucket> buckets,
                     std::vector<Layer> layers, const Options& options, bool takes_over = false);

  // After state() was filled from a checkpoint, perhaps of a world of another size, where other layers
  // were compressed: what was not sent of a layer that sends all now is added to its next sum, and
  // momentum goes where it is kept from now on. All ranks.
  Status TakeOver(Communicator* ranks);

  // `batches`: CodecMoment::batches; the same on all ranks.
  void BeginStep(int64_t step, double epoch, int64_t batches = 1);
  // Leaves in `gradients` what stands for their sum over all ranks.
  Status Reduce(Communicator* ranks, size_t bucket, std::span<float> gradients) override;
  void EndStep() { in_step_ = false; }
  // Whether a bucket has been reduced since the last EndStep: state() is then between two steps.
  bool in_step() const { return in_step_; }

  // Since the last call.
  CodingTimes TakeTimes();
  std::vector<DirectionReading> TakeReadings();

  std::vector<StateBlock> state();
  std::span<const Layer> layers() const { return layers_; }

 private:
  struct Bucket {
    ElementRange range;
    bool compressed = false;
    std::vector<SummedGradient> summed;  // dense ones and sketches
    std::vector<CodedGradient> gathered, sharded;
    std::vector<size_t> parameters;
    std::vector<size_t> late;  // of these something is still to be sent since TakeOver
  };

  void MakeMemories(bool takes_over);
  void Place(size_t parameter, Bucket* bucket);
  void SetMoments(Bucket* bucket) const;
  bool HasMomentum() const;
  std::span<float> Slice(const AlignedBuffer& block, size_t parameter) const;

  bool IsGuarded(size_t bucket) const;
  // Of the layers of which nothing is left out now, those of which `block` has something on any rank.
  StatusOr<std::vector<size_t>> LeftOver(Communicator* ranks, const AlignedBuffer& block) const;
  void AddMomentum(size_t parameter);
  Status AddLate(Communicator* ranks, size_t parameter);
  // The guard's, given the sum as it would be.
  void Read(const Bucket& bucket, std::span<const float> dense);

  const ParameterArena* const arena_;
  const Options options_;
  std::vector<Layer> layers_;
  std::vector<GradientShape> shapes_;
  // Of the gradients' layout; empty if no layer needs them.
  AlignedBuffer unsent_, unsent_sums_, momentum_, dense_momentum_;
  std::vector<std::unique_ptr<GradientMemory>> memories_, sum_memories_;  // by parameter
  std::vector<Bucket> buckets_;
  SummedExchange sums_;
  PayloadExchange payloads_;
  std::vector<DirectionReading> readings_;
  std::atomic<bool> in_step_{false};
  int64_t step_ = 0;
  double epoch_ = 0, batches_ = 1;
};

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_GRADIENT_COMPRESSOR_H_
