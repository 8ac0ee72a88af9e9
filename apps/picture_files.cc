#include "apps/picture_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "data/picture_name.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;

class PictureFiles : public Dataset {
 public:
  PictureFiles(std::vector<std::string> paths, int64_t max_bytes)
      : paths_(std::move(paths)), max_bytes_(max_bytes) {
    for (const std::string& path : paths_) samples_.push_back({.key = EscapeName(path)});
  }

  const std::vector<Sample>& samples() const override { return samples_; }
  const std::vector<std::string>& class_names() const override { return no_classes_; }
  std::string Describe() const override { return fmt::format("{} pictures", samples_.size()); }
  StatusOr<std::vector<std::byte>> Read(int64_t i) const override {
    return ReadFileBytes(paths_[i], max_bytes_);
  }

 private:
  std::vector<std::string> paths_, no_classes_;
  std::vector<Sample> samples_;
  int64_t max_bytes_;
};

Status AddFolder(const std::string& folder, std::vector<std::string>* paths) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;  // then reading it gives the reason
    if (entry->is_directory(unreadable)) continue;
    if (HasPictureExtension(entry->path().filename().string())) {
      paths->push_back(entry->path().string());
    }
  }
  return error ? ErrnoStatus(error.value(), fmt::format("cannot list '{}'", folder)) : OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Dataset>> OpenPictureFiles(const std::vector<std::string>& paths,
                                                    int32_t max_file_mib) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      RT_RETURN_IF_ERROR(AddFolder(path, &files));
    } else if (fs::exists(path, ignored)) {
      files.push_back(path);
    } else {
      return NotFound(fmt::format("'{}' does not exist", path));
    }
  }
  if (files.empty()) {
    return NotFound(fmt::format("no pictures (.jpg, .jpeg, .png, .bmp or .gif) in '{}'",
                                fmt::join(paths, "', '")));
  }
  std::sort(files.begin(), files.end(), NaturalOrder());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  constexpr int64_t kBytesPerMib = 1 << 20;
  return std::unique_ptr<Dataset>(
      std::make_unique<PictureFiles>(std::move(files), max_file_mib * kBytesPerMib));
}

}  // namespace ringtail
