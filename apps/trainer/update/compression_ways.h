// How each gradient of a run travels, as a checkpoint keeps it: one letter for each parameter, behind
// the number of ranks that it was chosen for.
//
//   "4:ddgsk"    four ranks; as it is, as it is, gathered, sharded, sketched
//
// Thread-safety: functions without state. Errors: DataLoss.
#ifndef RINGTAIL_APPS_TRAINER_UPDATE_COMPRESSION_WAYS_H_
#define RINGTAIL_APPS_TRAINER_UPDATE_COMPRESSION_WAYS_H_

#include <span>
#include <string>

#include "core/status.h"
#include "dist/compression/layer_costs.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

inline constexpr char kWaysKey[] = "compression_ways";  // in the metadata

struct CompressionWays {
  int world = 0;
  std::string letters;
};

char LetterOf(LayerWay way);
LayerWay WayOf(char letter);

std::string WaysText(const CompressionWays& ways);
StatusOr<CompressionWays> ParseWays(const std::string& text);
// Whether each layer's scheme can travel so.
Status CheckWays(const std::string& ways, std::span<const LayerScheme> schemes);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_TRAINER_UPDATE_COMPRESSION_WAYS_H_
