// What `--set` takes, from the schema: the completion of shells.
// Thread-safety: a pure function. Cost: milliseconds.
#ifndef RINGTAIL_APPS_HELP_FIELD_PATHS_H_
#define RINGTAIL_APPS_HELP_FIELD_PATHS_H_

#include <string>
#include <vector>

namespace google::protobuf {
class Descriptor;
}

namespace ringtail {

// The beginnings of all assignments to fields of `message`, in the order of the schema:
//
//   train.epochs=                a number or a text follows
//   train.precision=BFLOAT16     each value, where they are few
//   optim.adam={}                a message that is a choice: `{}` chooses it, with its defaults
//   net.layer[                   the index or the name of an element follows
std::vector<std::string> FieldAssignments(const google::protobuf::Descriptor& message);

}  // namespace ringtail

#endif  // RINGTAIL_APPS_HELP_FIELD_PATHS_H_
