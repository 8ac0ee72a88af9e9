// LayerRoute: how the gradient of a layer gets to all ranks; and how a checkpoint records the
// routes of a run: the number of ranks that they were chosen for, and one letter per parameter.
//
//   "4:ddgsk"       four ranks; dense, dense, gathered, sharded, sketched
//   "4:ddgsk:ss"    the same, and two layers that are frozen and will train later
//
// Thread-safety: functions without state. Errors: DataLoss.
#ifndef RINGTAIL_DIST_COMPRESSION_LAYER_ROUTES_H_
#define RINGTAIL_DIST_COMPRESSION_LAYER_ROUTES_H_

#include <span>
#include <string>

#include "core/status.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

enum class LayerRoute { kDense, kGathered, kSharded, kSketched };

inline constexpr char kRoutesKey[] = "compression_ways";  // in the metadata of a checkpoint

struct SavedRoutes {
  int world = 0;
  std::string letters;
  std::string frozen;  // of parameters that will train later; empty: there are none, or not known
};

char LetterOf(LayerRoute route);
LayerRoute RouteOf(char letter);  // of one that LetterOf returns

std::string RoutesText(const SavedRoutes& routes);
StatusOr<SavedRoutes> ParseRoutes(const std::string& text);
// Whether the scheme of each layer can take its route.
Status CheckRoutes(const std::string& letters, std::span<const LayerScheme> schemes);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_LAYER_ROUTES_H_
