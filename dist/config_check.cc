#include "dist/config_check.h"

#include "core/config/field_check.h"
#include "dist/compression/scheme_choice.h"

namespace ringtail {
namespace {

constexpr double kLargestBucketKib = 1 << 20;  // 1 GiB
constexpr double kShortestS = 0.1, kLongestS = 86'400;

}  // namespace

Status ValidateDistConfig(const DistConfig& config, const ConfigSource* source) {
  const FieldCheck check(source, "dist");
  RT_RETURN_IF_ERROR(check.Between("bucket_kib", config.bucket_kib(), 1, kLargestBucketKib));
  RT_RETURN_IF_ERROR(
      check.Between("end_bucket_kib", config.end_bucket_kib(), 1, kLargestBucketKib));
  RT_RETURN_IF_ERROR(check.NotNegative("check_every_steps", config.check_every_steps()));
  RT_RETURN_IF_ERROR(
      check.Between("join_timeout_s", config.join_timeout_s(), kShortestS, kLongestS));
  RT_RETURN_IF_ERROR(
      check.Between("hang_timeout_s", config.hang_timeout_s(), kShortestS, kLongestS));
  return ValidateCompression(config.compression(), source);
}

}  // namespace ringtail
