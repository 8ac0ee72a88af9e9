// Configs: protobuf text format, read with limits and with errors that point at the place.
//
//   lenet.textproto:7:25: unknown field 'kernal' of ConvolutionConfig; did you mean 'kernel'?
//     layer { convolution { kernal: 3 } }
//                           ^
//
// Limits: file <= 1 MiB, valid UTF-8, nesting <= 64, 100,000 fields and list elements. Fields that
// the schema does not know, values out of a type's range, and a singular field given twice are
// errors. Ranges of values are checked by whoever owns the schema, with ConfigSource::Error().
// State: none is global; a ConfigSource must not outlive the schema (generated ones live for ever).
// Thread-safety: functions without state.
#ifndef RINGTAIL_CORE_CONFIG_TEXT_CONFIG_H_
#define RINGTAIL_CORE_CONFIG_TEXT_CONFIG_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace google::protobuf {
class Message;
}

namespace ringtail {

// Where each field of a parsed config stands, so that later checks can point there, too.
class ConfigSource {
 public:
  ConfigSource();
  ~ConfigSource();
  ConfigSource(ConfigSource&&) noexcept;
  ConfigSource& operator=(ConfigSource&&) noexcept;

  // InvalidArgument "file:line:column: message", with the line and a caret, for the field at `path`
  // ("net.layer[3].convolution.kernel", an index per repeated field). Falls back to the nearest
  // enclosing field that stands in the file, and to "file: message". A field that was overridden
  // stands on the command line: "--set a.b=value: message".
  Status Error(std::string_view path, std::string_view message) const;

 private:
  friend Status ParseTextConfig(std::string_view, std::string_view, google::protobuf::Message*,
                                ConfigSource*);
  friend Status ApplyOverride(std::string_view, google::protobuf::Message*, ConfigSource*);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses `text`; `file_name` is for messages. `source` may be null. After an error `config` is
// empty and `source` as it was.
Status ParseTextConfig(std::string_view text, std::string_view file_name,
                       google::protobuf::Message* config, ConfigSource* source);
Status ReadTextConfig(const std::string& path, google::protobuf::Message* config,
                      ConfigSource* source);

// `--set a.b.c=value`. A path may index repeated fields by number or by the `name` field of an
// element; numbers win. Values are text format, but strings need no quotes. After an error `config`
// is as it was.
//
//   net.layer[3].convolution.out_channels=64
//   net.layer[conv1].convolution.out_channels=64
//   data.mean=1,2,3           replaces all elements
//   data.mean[0]=1            replaces one
//   data.mean=                clears
//   optim.adam.beta1=0.8      switches the oneof
//   optim.cosine={}           a whole message
Status ApplyOverride(std::string_view assignment, google::protobuf::Message* config,
                     ConfigSource* source);

// InvalidArgument that names the first float or double in `config` that is infinite or not a number
// (the text format knows inf and nan). `path` leads to `config` and may be empty; `source` may be
// null.
Status CheckFinite(const google::protobuf::Message& config, const ConfigSource* source,
                   std::string_view path);

std::string PrintTextConfig(
    const google::protobuf::Message& config);  // what ParseTextConfig reads back

// The candidate nearest to `word` by edit distance if it is near enough to be a typing error (a
// mistake in three letters), else the only one that begins with `word`, else "".
std::string NearestName(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_TEXT_CONFIG_H_
