// Ranges of every field of data.proto, in one place.
#ifndef RINGTAIL_DATA_CONFIG_CHECK_H_
#define RINGTAIL_DATA_CONFIG_CHECK_H_

#include <cstdint>
#include <string>

#include "core/config/config_source.h"
#include "core/status.h"
#include "data/data.pb.h"

namespace ringtail {

inline constexpr int64_t kMinImageSize = 8, kMaxImageSize = 1024;  // data.image_size, pixels

// The first field that is out of range, as InvalidArgument with the value and what is allowed. With
// a `source` (may be null), the message begins with file, line and column; `path` is where `config`
// stands in what the source parsed ("data"). Looks at no file: whether data.path exists,
// Dataset::Open finds out. Thread-safety: a pure function.
Status ValidateDataConfig(const DataConfig& config, const ConfigSource* source,
                          const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_CONFIG_CHECK_H_
