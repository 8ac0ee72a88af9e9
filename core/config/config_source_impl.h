// What a ConfigSource holds: the text, the location of each field as the parser found it, and the
// overrides. Private to core/config/. Thread-safety: none.
#ifndef RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_IMPL_H_
#define RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_IMPL_H_

#include <google/protobuf/text_format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/config/config_source.h"
#include "core/config/field_path.h"
#include "core/config/source_text.h"

namespace ringtail {

struct ConfigSource::Impl {
  // A field set on the command line; its path has indices in place of names.
  struct Override {
    FieldPath path;
    std::string written;  // "--set a.b=value"
  };

  SourceText text{"", ""};
  const google::protobuf::Descriptor* type = nullptr;  // of the config; null before parsing
  google::protobuf::TextFormat::ParseInfoTree locations;
  std::vector<Override> overrides;

  // The byte offset of the deepest field on the way to `path` that the text contains; nullopt if
  // not even the first one is there.
  std::optional<size_t> FindOffset(const FieldPath& path) const;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_IMPL_H_
