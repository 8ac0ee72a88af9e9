// ConfigSource: the place of each field of a parsed config, so that later checks can point there.
//
//   lenet.textproto:7:25: unknown field 'kernal' of ConvolutionConfig; did you mean 'kernel'?
//     layer { convolution { kernal: 3 } }
//                           ^
//
// Filled by ParseTextConfig (core/config/text_config.h) and ApplyOverride
// (core/config/config_override.h). A source must not outlive the schema; generated schemas live as
// long as the process. Thread-safety: const after parsing.
#ifndef RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_H_
#define RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_H_

#include <memory>
#include <string_view>

#include "core/status.h"

namespace google::protobuf {
class Message;
}

namespace ringtail {

class ConfigSource {
 public:
  ConfigSource();
  ~ConfigSource();
  ConfigSource(ConfigSource&&) noexcept;
  ConfigSource& operator=(ConfigSource&&) noexcept;

  // InvalidArgument "file:line:column: message", with the line and a caret, for the field at `path`
  // ("net.layer[3].convolution.kernel", an index per repeated field). Falls back to the nearest
  // enclosing field that stands in the file, then to "file: message". For an overridden field, the
  // error shows the command line: "--set a.b=value: message".
  Status Error(std::string_view path, std::string_view message) const;

 private:
  friend Status ParseTextConfig(std::string_view, std::string_view, google::protobuf::Message*,
                                ConfigSource*);
  friend Status ApplyOverride(std::string_view, google::protobuf::Message*, ConfigSource*,
                              std::string_view);
  struct Impl;  // core/config/config_source_impl.h
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_CONFIG_SOURCE_H_
