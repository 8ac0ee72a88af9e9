// The codecs and sketches by name, with their default options: for benchmarks, tests and command
// lines. Anything else is made by a constructor and its options.
#ifndef RINGTAIL_DIST_COMPRESSION_CODECS_CODECS_H_
#define RINGTAIL_DIST_COMPRESSION_CODECS_CODECS_H_

#include <memory>
#include <span>
#include <string_view>

#include "dist/compression/codecs/codec.h"
#include "dist/compression/sketches/sketch.h"

namespace ringtail {

// What a codec must know of the run that it is for.
struct CodecRun {
  double samples = 1;  // of a step, of all ranks
};

struct NamedCodec {
  std::string_view name;         // "bf16"
  std::string_view description;  // one line, without a full stop
  std::unique_ptr<Codec> (*make)(const CodecRun& run);
};

std::span<const NamedCodec> NamedCodecs();
// An unknown name is an InvalidArgument that lists the known ones.
StatusOr<std::unique_ptr<Codec>> MakeCodec(std::string_view name, const CodecRun& run = {});

struct NamedSketch {
  std::string_view name;         // "power_sgd"
  std::string_view description;  // one line, without a full stop
  std::unique_ptr<Sketch> (*make)(const GradientShape& shape);
};

std::span<const NamedSketch> NamedSketches();
const NamedSketch* FindSketch(std::string_view name);  // null if there is none

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_CODECS_CODECS_H_
