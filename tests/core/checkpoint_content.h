// The content of these tests' checkpoints: weights that are a function of the step, so that a test
// can tell a right checkpoint from a wrong one. Shared by the tests
// and the worker program that they kill.
#ifndef RINGTAIL_TESTS_CORE_CHECKPOINT_CONTENT_H_
#define RINGTAIL_TESTS_CORE_CHECKPOINT_CONTENT_H_

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/storage/checkpoint.h"
#include "core/storage/file.h"

namespace ringtail {

inline constexpr int64_t kTestWeights = 5000;  // 20 kB, several pages

inline std::vector<float> WeightsOfStep(int64_t step) {
  Rng rng(RngKey(static_cast<uint64_t>(step)).With(kTestStream));
  std::vector<float> weights(kTestWeights);
  for (float& weight : weights) weight = rng.Uniform(-1.0F, 1.0F);
  return weights;
}

inline Status SaveTestCheckpoint(CheckpointDirectory* directory, int64_t step) {
  const std::vector<float> weights = WeightsOfStep(step);
  const std::vector<int32_t> counts = {static_cast<int32_t>(step)};
  const TensorView tensors[] = {ViewF32("weights", {kTestWeights / 10, 10}, weights),
                                ViewI32("counts", {1}, counts)};
  // And the part of one rank.
  const std::vector<float> own = WeightsOfStep(-1 - step);
  const TensorView part[] = {ViewF32("own", {kTestWeights}, own)};
  RT_ASSIGN_OR_RETURN(const SafetensorsImage image, SerializeSafetensors(part, {}));
  const CheckpointParts parts{DrawPartTag(), {SummaryOf(image)}};
  const std::string path = directory->folder() + "/" + PartName(step, 0, 1, parts.tag);
  RT_RETURN_IF_ERROR(WriteFileAtomic(path, image.Pieces()));
  return directory->Save(step, tensors, {{"config", "step " + std::to_string(step)}},
                         CheckpointDirectory::kDefaultKeep, &parts);
}

inline bool HoldsItsPart(const Checkpoint& checkpoint) {
  if (!checkpoint.parts || checkpoint.parts->world() != 1) return false;
  const auto part = ReadPart(checkpoint.PartPath(0), checkpoint.parts->ranks[0]);
  const auto own = part.ok() ? part->F32("own", {kTestWeights}) : part.status();
  return own.ok() && std::ranges::equal(*own, WeightsOfStep(-1 - checkpoint.step));
}

// Whether a checkpoint holds everything that SaveTestCheckpoint wrote for its step.
inline bool HoldsItsStep(const Checkpoint& checkpoint) {
  const auto weights = checkpoint.file.F32("weights", {kTestWeights / 10, 10});
  const auto counts = checkpoint.file.I32("counts", {1});
  const std::map<std::string, std::string> metadata = {
      {"config", "step " + std::to_string(checkpoint.step)},
      {"step", std::to_string(checkpoint.step)}};
  std::map<std::string, std::string> has = checkpoint.file.metadata();
  has.erase("parts");
  return HoldsItsPart(checkpoint) && weights.ok() &&
         std::ranges::equal(*weights, WeightsOfStep(checkpoint.step)) && counts.ok() &&
         counts->front() == checkpoint.step && checkpoint.file.entries().size() == 2 &&
         has == metadata;
}

}  // namespace ringtail

#endif  // RINGTAIL_TESTS_CORE_CHECKPOINT_CONTENT_H_
