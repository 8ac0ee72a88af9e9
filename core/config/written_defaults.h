// Configs with all defaults written out, to be compared.
//
//   batch: 8            batch: 8  accumulation: 1       a default that is written out is no difference
//   relu {}             relu { slope: 0 }               another member of a oneof is one, though it has
//   sigmoid {}          sigmoid {}                      no settings: MessageDifferencer::EQUIVALENT
//                                                       takes that for one that is not set
//
// Thread-safety: a function without state.
#ifndef RINGTAIL_CORE_CONFIG_WRITTEN_DEFAULTS_H_
#define RINGTAIL_CORE_CONFIG_WRITTEN_DEFAULTS_H_

#include <google/protobuf/message.h>

namespace ringtail {

// Of a oneof only the member that is set. `message` has no field of its own type outside of lists and
// oneofs.
void WriteOutDefaults(google::protobuf::Message* message);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_WRITTEN_DEFAULTS_H_
