#include "apps/dogs_vs_cats/image_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/logging.h"
#include "core/storage/file.h"
#include "core/text/counted.h"
#include "data/decoding/image_format.h"
#include "data/describe.h"
#include "data/image_name.h"

namespace ringtail {
namespace {

namespace fs = std::filesystem;

class ImageFiles : public Dataset {
 public:
  ImageFiles(std::vector<std::string> paths, int64_t max_bytes)
      : paths_(std::move(paths)), max_bytes_(max_bytes) {
    for (const std::string& path : paths_) samples_.push_back({.key = EscapeName(path)});
  }

  const std::vector<Sample>& samples() const override { return samples_; }
  const std::vector<std::string>& class_names() const override { return no_classes_; }
  std::string Describe() const override { return Counted(std::ssize(samples_), "image"); }
  StatusOr<std::vector<std::byte>> Read(int64_t i) const override {
    return ReadFileBytes(paths_[i], max_bytes_);
  }

 private:
  std::vector<std::string> paths_, no_classes_;
  std::vector<Sample> samples_;
  int64_t max_bytes_;
};

Status AddFolder(const std::string& folder, std::vector<std::string>* paths,
                 IgnoredFiles* ignored) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;  // reading it will report the reason
    if (entry->is_directory(unreadable)) continue;
    const std::string name = entry->path().filename().string();
    if (HasImageExtension(name)) paths->push_back(entry->path().string());
    const std::string format = RefusedExtension(name);
    if (!format.empty()) ignored->AddNamed(IgnoredKind::kOtherFormat, format);
  }
  return error ? ErrnoStatus(error.value(), fmt::format("cannot list '{}'", folder)) : OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Dataset>> OpenImageFiles(const std::vector<std::string>& paths,
                                                  int32_t max_file_mib) {
  std::vector<std::string> files;
  IgnoredFiles left_out;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      RT_RETURN_IF_ERROR(AddFolder(path, &files, &left_out));
    } else if (fs::exists(path, ignored)) {
      files.push_back(path);
    } else {
      return NotFound(fmt::format("'{}' does not exist", path));
    }
  }
  if (files.empty()) {
    return NotFound(fmt::format("no images ({}) in '{}'{}", ReadExtensions(),
                                fmt::join(paths, "', '"), left_out.ToString()));
  }
  if (!left_out.ToString().empty()) {
    LogWarning(fmt::format("{}{}: {} are read; convert the others",
                           Counted(std::ssize(files), "image"), left_out.ToString(),
                           ReadExtensions()));
  }
  std::sort(files.begin(), files.end(), NaturalOrder());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  constexpr int64_t kBytesPerMib = 1 << 20;
  return std::unique_ptr<Dataset>(
      std::make_unique<ImageFiles>(std::move(files), max_file_mib * kBytesPerMib));
}

}  // namespace ringtail
