#include "data/image_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/storage/file.h"
#include "data/image_name.h"

namespace ringtail {
namespace {

class FileDataset : public Dataset {
 public:
  FileDataset(ImageList list, int64_t max_file_bytes)
      : class_names_(std::move(list.class_names)), max_file_bytes_(max_file_bytes) {
    std::sort(list.images.begin(), list.images.end(),
              [](const ListedImage& a, const ListedImage& b) {
                return NaturalLess(a.sample.key, b.sample.key);
              });
    for (ListedImage& image : list.images) {
      samples_.push_back(std::move(image.sample));
      paths_.push_back(std::move(image.path));
    }
    description_ = fmt::format("{} in {}: {}{}", list.layout, EscapeName(list.root),
                               DescribeSamples(samples_, class_names_), list.ignored.ToString());
    const std::set<std::string>& empty = list.ignored.names(IgnoredKind::kEmptyClass);
    empty_classes_.assign(empty.begin(), empty.end());
  }

  const std::vector<Sample>& samples() const override { return samples_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::vector<std::string> empty_classes() const override { return empty_classes_; }
  std::string Describe() const override { return description_; }

  int64_t FileBytes(int64_t i) const override {
    struct stat info {};
    return stat(paths_[i].c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : -1;
  }

  StatusOr<std::vector<std::byte>> Read(int64_t i) const override {
    RT_CHECK(i >= 0 && i < static_cast<int64_t>(paths_.size()), "no such sample");
    auto bytes = ReadFileBytes(paths_[i], max_file_bytes_);
    if (bytes.ok()) return bytes;
    // The file's name is in the message, as bytes that need not be text.
    return Status(bytes.status().code(), EscapeName(bytes.status().message()));
  }

 private:
  std::vector<Sample> samples_;
  std::vector<std::string> paths_;
  std::vector<std::string> class_names_, empty_classes_;
  std::string description_;
  int64_t max_file_bytes_;
};

}  // namespace

std::unique_ptr<Dataset> MakeFileDataset(ImageList list, int32_t max_file_mib) {
  return std::make_unique<FileDataset>(std::move(list), int64_t{max_file_mib} << 20);
}

}  // namespace ringtail
