// HeldFolder: an open folder. Files written through it end up in this folder and in no other, even
// if it is renamed or deleted, or its name is reused, meanwhile.
//
// Thread-safety: none. Errors: NotFound if the folder was deleted. Needs /proc.
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
  // `name`: its name for messages and other processes, if not `path`.
  static StatusOr<HeldFolder> Open(const std::string& path, const std::string& name = "");

  // Its name when it was opened, absolute.
  const std::string& path() const { return path_; }

  // A path to the entry `name`, for any function of this process while the folder is open.
  std::string Through(std::string_view name) const;
  // The status of such a function, with the folder's name in place of that path.
  Status Named(const Status& status) const;

 private:
  HeldFolder(std::string path, FileDescriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  std::string path_;
  FileDescriptor folder_;
};

}  // namespace ringtail

#endif  // RINGTAIL_CORE_STORAGE_HELD_FOLDER_H_
