// HeldFolder: a folder that is open. What is written through it gets into this folder and into no
// other, whoever renames it, deletes it or takes its name meanwhile.
//
// Thread-safety: none. Errors: of a folder that was deleted, NotFound. Needs /proc.
#ifndef RINGTAIL_CORE_STORAGE_HELD_FOLDER_H_
#define RINGTAIL_CORE_STORAGE_HELD_FOLDER_H_

#include <string>
#include <string_view>
#include <utility>

#include "core/status.h"
#include "core/storage/file_descriptor.h"

namespace ringtail {

class HeldFolder {
 public:
  // `name`: what messages and other processes call it, if not `path`.
  static StatusOr<HeldFolder> Open(const std::string& path, const std::string& name = "");

  // Its name when it was opened, absolute.
  const std::string& path() const { return path_; }

  // A path of what is called `name` in it, for any function of this process while this is open.
  std::string Through(std::string_view name) const;
  // What such a function says, with the folder's name.
  Status Named(const Status& status) const;

 private:
  HeldFolder(std::string path, FileDescriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  std::string path_;
  FileDescriptor folder_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_HELD_FOLDER_H_
