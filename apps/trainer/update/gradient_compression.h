// GradientCompression: which layers' gradients a run compresses and how, decided once by rank 0 and
// kept in every checkpoint; and the compressor that does it.
//
//   config     the scheme of each layer        dist/compression/scheme_choice.h
//   measured   what each costs and saves here  dist/compression/layer_costs.h      (rank 0)
//   way        as it is, or coded, and by which route: one letter per layer, the same on all ranks
//
// A rank that goes on alone with what several had begun sends nothing, but what they had not sent is
// still added, and momentum that a scheme keeps goes on.
//
// Thread-safety: the trainer thread; the reducer the communication thread.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_COMPRESSION_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_COMPRESSION_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/trainer/checkpoint/part_exchange.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"
#include "core/storage/safetensors.h"
#include "dist/compression/compression_state.h"
#include "dist/compression/gradient_compressor.h"
#include "dist/compression/layer_costs.h"

namespace ringtail {

class GradientCompression {
 public:
  // What a checkpoint had; empty for a run that begins. Rank 0's counts.
  struct Saved {
    std::string path;  // of the checkpoint
    int world = 0;     // ranks that it was written by
    std::string ways;  // a letter for each parameter, as that world sent it
    CompressionState state;
    SavedParts parts;
    bool empty() const { return state.empty() && parts.empty(); }
  };
  struct Options {
    int64_t global_batch = 1;
    uint64_t seed = 0;
    std::span<const GradientBucket> buckets;         // of the gradients of `arena`
    const CheckpointDirectory* directory = nullptr;  // rank 0's counts; null: none are written
  };

  // All ranks. `world` and `arena` must outlive it. Null if there is nothing for it to do.
  static StatusOr<std::unique_ptr<GradientCompression>> Create(TrainingWorld* world,
                                                               const ParameterArena* arena,
                                                               const CompressionConfig& config,
                                                               const Options& options,
                                                               const Saved& saved);

  // `batches`: of Options::global_batch, that the step takes.
  void BeginStep(int64_t step, double epoch, int64_t batches);
  BucketReducer* reducer() { return compressor_.get(); }
  // Encoding and decoding of the last step; warns about layers whose direction is lost.
  CodingTimes EndStep(int64_t step);
  // What has not been sent is thrown away, on this rank: it may hold what is not a number.
  void Forget();

  // For a checkpoint of `step`: every rank writes what is its own into rank 0's `directory`. All
  // ranks.
  StatusOr<WrittenParts> WriteParts(int64_t step, const CheckpointDirectory* directory);
  // What the parts of a checkpoint take, by rank and without their headers; empty: it has none.
  const std::vector<int64_t>& part_bytes() const { return part_bytes_; }
  // What rank 0 writes into the checkpoint. Nothing where a step has begun, but not ended: that
  // changes what is left to send.
  std::vector<TensorView> Tensors() const;
  // Over what is the same on all ranks, behind what `previous` is the checksum of.
  uint32_t Checksum(uint32_t previous) const;
  void AddMetadata(std::map<std::string, std::string>* metadata) const;
  static StatusOr<Saved> Read(const Checkpoint& checkpoint);

  // "two_bit for 20 of 62 gradients, 44.7 -> 2.8 MB to each rank and step; ..."
  const std::string& description() const { return description_; }

 private:
  GradientCompression(TrainingWorld* world, const ParameterArena* arena,
                      const CompressionConfig& config)
      : world_(world), arena_(arena), config_(config) {}
  // One letter per parameter; rank 0 decides.
  std::string WaysOf(std::span<const LayerScheme> schemes, const Saved& saved) const;
  std::string ChooseWays(std::span<const LayerScheme> schemes) const;
  void Take(std::vector<LayerScheme> schemes, const Options& options, bool takes_over);
  Status TakeOver(const Saved& saved);
  Status FindWriters(const CheckpointDirectory* directory);
  // `left`: the parameters that travel as they are, though the config would compress them.
  void Describe(std::span<const std::string> left);
  LayerWay Choose(const LayerScheme& scheme, const GradientShape& shape) const;

  TrainingWorld* const world_;
  const ParameterArena* const arena_;
  const CompressionConfig config_;
  std::string ways_, description_;
  std::unique_ptr<GradientCompressor> compressor_;
  std::vector<int64_t> part_bytes_;
  std::unique_ptr<PartExchange> parts_;  // null: no rank has anything of its own, or it is alone
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_COMPRESSION_H_
