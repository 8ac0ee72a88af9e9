// Measures the codecs and sketches of dist/compression/: speed, size, and how far the decoded gradient
// is from the gradient, each by itself, without error feedback and between one rank and itself.
//
//            encode                       decode
//   codec    Encode                       DecodeAdd
//   sketch   Pack and Take, each round    Unpack
//
// Speeds are f32 bytes of the gradient per second of processor time, of one thread: what a core does
// when nobody else uses it, and what a communication thread has. Each is the median of rounds; a
// round encodes (or decodes) all tensors once. Gradients lie in memory as backward has left them: in
// the outer caches if they fit.
// Thread-safety: one call at a time. Cost: `seconds` twice, for each codec and each set of tensors.
#ifndef RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_H_
#define RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace ringtail {

struct CompressBenchmarkOptions {
  std::vector<std::string>
      codecs;                  // or sketches: names (dist/compression/codecs/codecs.h); empty: all
  std::vector<int64_t> bytes;  // of random gradients, normally distributed
  // A safetensors file with tensors "grad.<name>", as `dogs_vs_cats replay` writes it; instead of
  // random ones. All together count as one gradient, or each as one.
  std::string file;
  bool per_tensor = false;
  // Of a step. The file's gradients are means over samples; what codecs get are sums.
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

// Errors: an unknown name, a file that is none or holds no gradients.
StatusOr<std::vector<CompressRate>> BenchmarkCompression(const CompressBenchmarkOptions& options);

std::string CompressionTable(const std::vector<CompressRate>& rates);
std::string CompressionJson(const std::vector<CompressRate>& rates);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_BENCH_COMPRESS_BENCH_COMPRESS_H_
