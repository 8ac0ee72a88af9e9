#include "core/storage/held_folder.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <filesystem>

namespace ringtail {

StatusOr<HeldFolder> HeldFolder::Open(const std::string& path, const std::string& name) {
  std::string absolute = std::filesystem::absolute(name.empty() ? path : name).lexically_normal();
  auto folder = FileDescriptor::Open(path, O_RDONLY | O_DIRECTORY);
  RT_RETURN_IF_ERROR(Status(folder.status()).Annotate("the folder '" + absolute + "'"));
  return HeldFolder(std::move(absolute), *std::move(folder));
}

std::string HeldFolder::Through(std::string_view name) const {
  return fmt::format("/proc/self/fd/{}/{}", folder_.number(), name);
}

Status HeldFolder::Named(const Status& status) const {
  if (status.ok()) return status;
  const std::string through = Through("");
  std::string message = status.message();
  for (size_t at = 0; (at = message.find(through, at)) != std::string::npos;) {
    message.replace(at, through.size(), path_ + "/");
    at += path_.size() + 1;
  }
  return {status.code(), message};
}

}  // namespace ringtail
