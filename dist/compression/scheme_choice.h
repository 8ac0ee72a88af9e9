// Which scheme the config gives to which layer.
//
//   name                  "layer4.0.conv1.weight"
//   is it large enough?   min_elements, and neither bias nor batch norm
//   which rule?           the first that fits, else the scheme for all
//
// Thread-safety: functions without state.
#ifndef RINGTAIL_DIST_COMPRESSION_SCHEME_CHOICE_H_
#define RINGTAIL_DIST_COMPRESSION_SCHEME_CHOICE_H_

#include <span>
#include <string_view>
#include <vector>

#include "core/config/text_config.h"
#include "core/parameter.h"
#include "dist/compression/compression.pb.h"
#include "dist/compression/layer_scheme.h"

namespace ringtail {

// InvalidArgument, at its place in the file, if a number is out of range, or if schemes contradict
// each other. `source` may be null, `path` is where the config
// is in it.
Status ValidateCompression(const CompressionConfig& config, const ConfigSource* source,
                           const std::string& path = "dist.compression");

// Whether anything may be compressed at all.
bool CompressesAnything(const CompressionConfig& config);
// The scheme that keeps the momentum in place of the optimizer; null if there is none.
const DgcScheme* FindDgc(const CompressionConfig& config);

// Whether running statistics take in the batch of the step that `step` others come before.
bool TakesStatistics(const CompressionConfig& config, int64_t step);

// The scheme of each parameter. `samples`: images in a step of one batch, on all ranks. The config
// is valid.
std::vector<LayerScheme> ChooseSchemes(const CompressionConfig& config,
                                       std::span<const Parameter> parameters, double samples);

// Whether `name` matches `pattern`, in which each * stands for any characters. Time: the product of
// both lengths at most.
bool MatchesPattern(std::string_view name, std::string_view pattern);

}  // namespace ringtail

#endif  // RINGTAIL_DIST_COMPRESSION_SCHEME_CHOICE_H_
