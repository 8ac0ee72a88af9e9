#include "apps/help/field_paths.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

namespace ringtail {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

class Paths {
 public:
  void Add(const Descriptor& message, const std::string& prefix) {
    open_.push_back(&message);
    for (int i = 0; i < message.field_count(); ++i) AddField(*message.field(i), prefix);
    open_.pop_back();
  }

  std::vector<std::string> take() { return std::move(paths_); }

 private:
  void AddField(const FieldDescriptor& field, const std::string& prefix) {
    const std::string path = prefix + field.name();
    const Descriptor* const message = field.message_type();
    if (message != nullptr && field.is_repeated()) {
      paths_.push_back(path + "[");
    } else if (message != nullptr) {
      if (field.containing_oneof() != nullptr) paths_.push_back(path + "={}");
      // (A message that contains itself has no end.)
      if (std::ranges::find(open_, message) == open_.end()) Add(*message, path + ".");
    } else {
      AddValues(field, path + "=");
    }
  }

  void AddValues(const FieldDescriptor& field, const std::string& assignment) {
    if (field.type() == FieldDescriptor::TYPE_ENUM) {
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        paths_.push_back(assignment + field.enum_type()->value(i)->name());
      }
    } else if (field.type() == FieldDescriptor::TYPE_BOOL) {
      for (const char* value : {"true", "false"}) paths_.push_back(assignment + value);
    } else {
      paths_.push_back(assignment);
    }
  }

  std::vector<const Descriptor*> open_;  // from the root to the message that is added
  std::vector<std::string> paths_;
};

}  // namespace

std::vector<std::string> FieldAssignments(const google::protobuf::Descriptor& message) {
  Paths paths;
  paths.Add(message, "");
  return paths.take();
}

}  // namespace ringtail
