// What was meant by a field that a message does not have.
//
//   kernal          did you mean 'kernel'?                      a typing error
//   conv2d          did you mean 'convolution'?                 PyTorch's or Keras's name for it
//   epochs          did you mean 'train.epochs'?                it stands elsewhere
//   layer           a field of NetConfig: is a } missing above, for the { in line 7?
//   layer           a field of 'net', which has ended in line 9: is there one } too many above?
//
// Private to core/config/. Thread-safety: functions without state. Cost: of the last two, a pass over
// the text before the field.
#ifndef RINGTAIL_CORE_CONFIG_UNKNOWN_FIELD_H_
#define RINGTAIL_CORE_CONFIG_UNKNOWN_FIELD_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace ringtail {

// "; did you mean 'kernel'?" or, if nothing is near, "; valid are kernel, stride".
std::string Suggestion(std::string_view name, const std::vector<std::string>& candidates);

// "unknown field 'epoch' of TrainConfig; did you mean 'train.epochs'?", in a path of a `root`. `above`:
// the path to the message, "train.".
std::string UnknownField(std::string_view name, const google::protobuf::Descriptor& type,
                         const std::string& above, const google::protobuf::Descriptor& root);

// The same in a file that is a `root`; `before`: its text before the field.
std::string UnknownFieldAt(std::string_view name, const google::protobuf::Descriptor& type,
                           std::string_view before, const google::protobuf::Descriptor& root);

}  // namespace ringtail

#endif  // RINGTAIL_CORE_CONFIG_UNKNOWN_FIELD_H_
