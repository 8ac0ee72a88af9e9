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

// InvalidArgument for the first field out of range, with the value and the range. With a `source`
// (may be null), the message starts with file, line and column; `path` is the place of `config` in
// the parsed message ("data"). Accesses no file: Dataset::Open checks data.path. Thread-safety: a
// pure function.
Status ValidateDataConfig(const DataConfig& config, const ConfigSource* source,
                          const std::string& path);

}  // namespace ringtail

#endif  // RINGTAIL_DATA_CONFIG_CHECK_H_
