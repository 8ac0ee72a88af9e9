#include "dist/gradients/gradient_buckets.h"

#include "core/check.h"

namespace ringtail {
namespace {

int64_t BytesOf(const ElementRange& range) {
  return range.count * static_cast<int64_t>(sizeof(float));
}

// Index of the first parameter of the last bucket.
size_t FirstOfLastBucket(std::span<const Parameter> parameters, int64_t end_bytes) {
  size_t first = parameters.size() - 1;
  int64_t bytes = BytesOf({.count = parameters[first].elements});
  while (first > 0) {
    bytes += BytesOf({.count = parameters[first - 1].elements});
    if (bytes > end_bytes) break;
    --first;
  }
  return first;
}

}  // namespace

BucketOptions BucketsOf(const DistConfig& config) {
  constexpr int64_t kKib = 1024;
  return {.bytes = config.bucket_kib() * kKib, .end_bytes = config.end_bucket_kib() * kKib};
}

std::vector<GradientBucket> MakeGradientBuckets(std::span<const Parameter> parameters,
                                                const BucketOptions& options) {
  RT_CHECK(options.bytes > 0 && options.end_bytes > 0, "bucket sizes are positive");
  std::vector<GradientBucket> buckets;
  if (parameters.empty()) return buckets;
  const size_t last_begin = FirstOfLastBucket(parameters, options.end_bytes);
  bool full = true;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t begin = parameters[i].offset;
    if (full || i == last_begin) buckets.push_back({.range = {.offset = begin}});
    GradientBucket& bucket = buckets.back();
    const int64_t end =
        i + 1 < parameters.size() ? parameters[i + 1].offset : begin + parameters[i].elements;
    bucket.range.count = end - bucket.range.offset;
    ++bucket.parameters;
    const int64_t enough = buckets.size() == 1 ? options.end_bytes : options.bytes;
    full = i < last_begin && BytesOf(bucket.range) >= enough;
  }
  return buckets;
}

}  // namespace ringtail
