// What a ConfigSource (core/config/text_config.h) holds: the text, where the parser found each field, and
// what was overridden. Private to core/. Thread-safety: none.
#ifndef RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_H_
#define RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_H_

#include <google/protobuf/text_format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/config/field_path.h"
#include "core/config/source_text.h"
#include "core/config/text_config.h"

namespace ringtail {

struct ConfigSource::Impl {
  // A field set from the command line, with indices for names in its path.
  struct Override {
    FieldPath path;
    std::string assignment;
  };

  SourceText text{"", ""};
  const google::protobuf::Descriptor* type = nullptr;  // of the config; null before parsing
  google::protobuf::TextFormat::ParseInfoTree locations;
  std::vector<Override> overrides;

  // The byte where the deepest field on the way to `path` begins;
  // none if not even the first is there.
  std::optional<size_t> FindOffset(const FieldPath& path) const;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_H_
