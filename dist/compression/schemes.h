// The compression schemes: a table with one row for each kind of CompressionScheme
// (compression.proto). Config, benchmark and tests all make their codecs and sketches from it.
//
//   config text  --parse-->  CompressionScheme  --row-->  codec or sketch, memory
//   "qsgd4"      --preset->  { qsgd { levels: 7 } }                              = LayerScheme
//
// Numbers that a config may leave out have their defaults in compression.proto and nowhere else.
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_SCHEMES_H_
#define RINGTAIL_DIST_COMPRESSION_SCHEMES_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/field_check.h"
#include "core/status.h"
#include "dist/compression/compression.pb.h"
#include "dist/compression/gradient_shape.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

// What a codec must know of the run.
struct SchemeRun {
  double samples = 1;  // in a step of one batch, on all ranks
};

// A scheme with numbers, by name: for benchmarks, tests and command lines.
struct SchemePreset {
  std::string_view name;         // "qsgd4"
  std::string_view options;      // text format of the scheme's message: "levels: 7"
  std::string_view description;  // one line, without a full stop
};

// A row. Exactly one of the three `make_` is set, except for `dense`, which has none.
struct Scheme {
  using Message = CompressionScheme;

  Message::KindCase kind;
  MemoryKind memory = MemoryKind::kNone;  // with error feedback (or momentum) switched on
  std::vector<SchemePreset> presets;
  // InvalidArgument if a number is out of range; null: there is none. `check` is within the message
  // of the kind.
  Status (*check)(const Message& scheme, const FieldCheck& check) = nullptr;
  std::unique_ptr<Codec> (*make_codec)(const Message& scheme, const SchemeRun& run) = nullptr;
  std::unique_ptr<Sketch> (*make_sketch)(const Message& scheme,
                                         const GradientShape& shape) = nullptr;
  // A scheme that chooses another one by the kind of the layer.
  Message (*make_scheme)(const Message& scheme, ParameterKind kind) = nullptr;
  // Whether a gradient of the shape gets smaller; null: any does. Others should travel dense.
  bool (*worthwhile)(const Message& scheme, const GradientShape& shape) = nullptr;

  std::string name() const;  // of the field in compression.proto: "bf16"
};

std::span<const Scheme> Schemes();
const Scheme& SchemeOf(CompressionScheme::KindCase kind);  // not set: `dense`

// InvalidArgument if a number is out of range. `check` is within the CompressionScheme.
Status CheckScheme(const CompressionScheme& scheme, const FieldCheck& check);

// Whether a gradient of `shape` gets smaller (Scheme::worthwhile).
bool IsWorthwhile(const CompressionScheme& scheme, const GradientShape& shape);

// Codec or sketch, and memory, for a gradient of `shape`. The numbers are in their ranges. Without
// `error_feedback`, what a scheme leaves out is lost (momentum is kept in any case).
LayerScheme MakeLayerScheme(const CompressionScheme& scheme, const GradientShape& shape,
                            const SchemeRun& run = {}, bool error_feedback = true);

// All presets of codecs, or of sketches, in the order of the table.
std::vector<SchemePreset> CodecPresets();
std::vector<SchemePreset> SketchPresets();
// The scheme of a preset. An unknown name is an InvalidArgument that lists the known ones.
StatusOr<CompressionScheme> FindPreset(std::string_view name);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SCHEMES_H_
