// GradientCompression: which gradients a run compresses, and how; rank 0 decides once, and every
// checkpoint keeps the decision. It makes the reducer that compresses.
//
//   config     the scheme of each layer          dist/compression/scheme_choice.h
//   measured   what each costs and saves here    dist/compression/layer_costs.h      (rank 0)
//   route      dense, or coded and exchanged in  dist/compression/layer_routes.h
//              one of three ways: one letter per
//              layer, the same on all ranks
//
// Layers that are frozen and train later get their routes at once, so that every checkpoint has
// them; what the others keep then moves to the next generation in memory (HandOverTo).
//
// One rank that continues a run of several sends nothing, but their residuals are still added, and
// momentum that a scheme keeps continues.
//
// Thread-safety: the trainer thread; the reducer the communication thread.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_COMPRESSION_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_COMPRESSION_H_

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trainer/checkpoint/part_exchange.h"
#include "apps/trainer/checkpoint/resume_point.h"
#include "apps/trainer/training_world.h"
#include "core/status.h"
#include "core/storage/checkpoint.h"
#include "core/storage/safetensors_writer.h"
#include "dist/compression/compressed_reducer.h"
#include "dist/compression/compression_state.h"
#include "dist/compression/layer_costs.h"
#include "dist/compression/layer_routes.h"

namespace ringtail {

class GradientCompression {
 public:
  // From a checkpoint; empty for a new run.
  struct Saved {
    std::string path;    // of the checkpoint
    SavedRoutes routes;  // of the run that wrote it
    CompressionState state;
    SavedParts parts;
    int source_rank = 0;  // whose counts; the same on all ranks
    // In place of all this: of the generation before, on every rank its own. Must outlive Create.
    const HandOver* in_memory = nullptr;
    bool empty() const {
      return state.empty() && parts.empty() && (in_memory == nullptr || in_memory->kept.empty());
    }
  };
  struct Options {
    int64_t global_batch = 1;
    uint64_t seed = 0;
    std::span<const GradientBucket> buckets;         // of the gradients of `arena`
    const CheckpointDirectory* directory = nullptr;  // only rank 0's matters; null: writes none
    // The sum has a share for each rank, as of differences, and not for each image: what ranks of a
    // world of another size had not sent is worth more or less by the ratio of the sizes.
    bool per_rank = false;
    bool thaws = false;  // whether what is fixed in `arena` trains later
  };

  // All ranks. `world` and `arena` must outlive it. Null if there is nothing to compress or to add.
  static StatusOr<std::unique_ptr<GradientCompression>> Create(TrainingWorld* world,
                                                               const ParameterArena* arena,
                                                               const CompressionConfig& config,
                                                               const Options& options,
                                                               const Saved& saved);

  // `batches`: number of batches, each of Options::global_batch, that the step takes.
  void BeginStep(int64_t step, double epoch, int64_t batches);
  BucketReducer* reducer() { return reducer_.get(); }
  // Times of the last step; warns about layers whose direction is lost.
  CodingTimes EndStep(int64_t step);
  // Drops residuals and momentum of this rank: after a step that was skipped they may hold a NaN.
  void Forget();

  // For a checkpoint of `step`: every rank writes its own state into rank 0's `directory`. All
  // ranks.
  StatusOr<WrittenParts> WriteParts(int64_t step, const CheckpointDirectory* directory);
  // What WriteParts writes of this rank.
  std::vector<TensorView> OwnTensors() const;
  // Bytes of the parts of a checkpoint, by rank and without headers; empty: it has none.
  const std::vector<int64_t>& part_bytes() const { return part_bytes_; }
  // What rank 0 writes into the checkpoint. Nothing between a step's first bucket and its end, when
  // the state belongs to no step.
  std::vector<TensorView> Tensors() const;
  // Of the state that is the same on all ranks, continuing the checksum `previous`.
  uint32_t Checksum(uint32_t previous) const;
  // For the checkpoint.
  SavedRoutes routes() const { return {world_->size(), routes_, frozen_routes_}; }
  // What the next generation of these ranks continues with, in which more parameters train.
  void HandOverTo(HandOver* next) const;
  static StatusOr<Saved> Read(const ResumePoint& point);

  // "two_bit for 20 of 62 gradients, 44.7 -> 2.8 MB to each rank and step; ...", or "and round"
  const std::string& description() const { return description_; }

 private:
  GradientCompression(TrainingWorld* world, const ParameterArena* arena,
                      const CompressionConfig& config, bool per_rank)
      : world_(world), arena_(arena), config_(config), unit_(per_rank ? "round" : "step") {}
  // One letter per parameter; rank 0 decides. `frozen`: of parameters that train later.
  SavedRoutes RoutesOf(std::span<const LayerScheme> schemes, std::span<const LayerScheme> frozen,
                       const Saved& saved) const;
  std::string ChooseRoutes(std::span<const Parameter> parameters,
                           std::span<const LayerScheme> schemes) const;
  LayerRoute ChooseRoute(const LayerScheme& scheme, const GradientShape& shape) const;
  void MakeReducer(std::vector<LayerScheme> schemes, const Options& options, bool carries_over);
  Status Restore(const Saved& saved, bool per_rank);
  Status ReadState(const Saved& saved);
  // The reducer's state by block and parameter, which another arena does not lay out alike.
  std::map<std::string, std::span<float>> StateByParameter() const;
  Status FitToWorld(const Saved& saved);
  Status FindWriters(const CheckpointDirectory* directory);
  // `dense`: parameters that travel uncompressed although the config has a scheme for them.
  void Describe(std::span<const std::string> dense);

  TrainingWorld* const world_;
  const ParameterArena* const arena_;
  const CompressionConfig config_;
  const std::string_view unit_;  // in texts: what ends with an exchange
  std::string routes_, frozen_routes_, description_;
  std::unique_ptr<CompressedReducer> reducer_;
  std::vector<int64_t> part_bytes_;
  std::unique_ptr<PartExchange> parts_;  // null: no rank has state of its own, or this one is alone
};

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_GRADIENT_COMPRESSION_H_
