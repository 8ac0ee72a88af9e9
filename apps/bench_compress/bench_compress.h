// Measures the codecs and sketches of dist/compression/, without error feedback and on one rank:
// speed, size, and the distance between the gradient and the decoded gradient.
//
//            encode                       decode
//   codec    Encode                       DecodeAdd
//   sketch   Pack and Take, each round    Unpack
//
// Speeds are f32 bytes of the gradient per second of processor time of one thread, which is what a
// communication thread has. Each is the median of rounds; a round encodes (or decodes) all tensors
// once. Gradients are where backward leaves them: in the outer caches if they fit.
// Thread-safety: one call at a time. Cost: `seconds` twice, for each codec and each set of tensors.
#ifndef RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_H_
#define RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct CompressBenchmarkOptions {
  std::vector<std::string> codecs;  // names of presets (dist/compression/schemes.h); empty: all
  std::vector<int64_t> bytes;       // of random gradients, normally distributed
  // Instead of random gradients: a safetensors file with tensors "grad.<name>", as `dogs_vs_cats
  // replay` writes it. All of them count as one gradient, or each tensor by itself.
  std::string file;
  bool per_tensor = false;
  // In a step. The file's gradients are means over samples; codecs get sums.
  double samples = 1;
  double seconds = 0.25;  // for each speed; at least 5 rounds
};

struct CompressRate {
  std::string codec, gradient;  // names
  int64_t bytes = 0, payload_bytes = 0;
  double encode_gb_per_s = 0, decode_gb_per_s = 0;
  double ratio = 0;           // bytes / payload_bytes
  double relative_error = 0;  // |decoded - gradient| / |gradient|, L2
  double cosine = 0;          // between them
};

// Errors: an unknown name; a file that cannot be read or has no gradients.
StatusOr<std::vector<CompressRate>> BenchmarkCompression(const CompressBenchmarkOptions& options);

std::string CompressionTable(const std::vector<CompressRate>& rates);
std::string CompressionJson(const std::vector<CompressRate>& rates);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_H_
