// `--set a.b.c=value`: changes one field of a parsed config.
//
//   net.layer[3].convolution.out_channels=64
//   net.layer[conv1].convolution.out_channels=64
//   data.mean=1,2,3           replaces all elements
//   data.mean[0]=1            replaces one
//   data.mean=                clears
//   optim.adam.beta1=0.8      switches the oneof
//   optim.cosine={}           a whole message
//
// A path may index repeated fields by number or by the `name` field of an element; numbers win.
// Values are text format, but strings need no quotes. Thread-safety: a function without state.
#ifndef RINGTAIL_CORE_CONFIG_CONFIG_OVERRIDE_H_
#define RINGTAIL_CORE_CONFIG_CONFIG_OVERRIDE_H_

#include <string_view>

#include "core/config/config_source.h"
#include "core/status.h"

namespace ringtail {

// Applies `assignment` to `config` and records it in `source` (may be null), so that later errors
// about the field show the assignment as it was given, behind `flag`. InvalidArgument, with
// `config` unchanged, if the path or the value is wrong.
Status ApplyOverride(std::string_view assignment, google::protobuf::Message* config,
                     ConfigSource* source, std::string_view flag = "--set");

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_CONFIG_OVERRIDE_H_
