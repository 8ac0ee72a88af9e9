#include "apps/synthesize/synthesize.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <opencv2/core/utility.hpp>
#include <opencv2/imgcodecs.hpp>

#include "apps/synthesize/image.h"
#include "core/parallel_for.h"
#include "core/storage/file.h"

namespace ringtail {
namespace {

constexpr int64_t kMaxImages = 10'000'000;
constexpr int kMinJpegQuality = 75, kJpegQualities = 21;  // 75 .. 95

// What one image shows, under which name and from which randomness.
struct Assignment {
  Species species;
  std::string name;
  RngKey key;
};

Assignment TrainImage(int64_t index, RngKey key) {
  const bool cat = index % 2 == 0;
  const std::string_view label = cat ? "cat" : "dog";
  const int64_t number = index / 2;
  return {cat ? Species::kCat : Species::kDog, fmt::format("{}.{}.jpg", label, number),
          key.With(label).With(number)};
}

Assignment TestImage(int64_t index, RngKey key) {
  const int64_t number = index + 1;  // Kaggle counts from 1
  const RngKey own = key.With("test1").With(number);
  const bool cat = Rng(own.With("species")).Below(2) == 0;
  return {cat ? Species::kCat : Species::kDog, fmt::format("{}.jpg", number), own};
}

Status WriteImage(const Assignment& assignment, const std::string& folder) {
  const std::string path = folder + "/" + assignment.name;
  try {
    const cv::Mat image = DrawImage(assignment.species, assignment.key);
    Rng rng(assignment.key.With("jpeg"));
    const int quality = kMinJpegQuality + static_cast<int>(rng.Below(kJpegQualities));
    std::vector<uchar> bytes;
    cv::imencode(".jpg", image, bytes, {cv::IMWRITE_JPEG_QUALITY, quality});
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) return ErrnoStatus(errno, "cannot write " + path);
  } catch (const std::exception& error) {
    return Internal("drawing " + path + ": " + error.what());
  }
  return OkStatus();
}

// Draws `count` images into `folder`.
Status DrawFolder(const std::string& folder, int64_t count, RngKey key,
                  Assignment (*assign)(int64_t, RngKey)) {
  std::mutex mutex;
  Status first_error;  // the first to happen; the others are of the same kind
  ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Status status = WriteImage(assign(i, key), folder);
      if (status.ok()) continue;
      const std::lock_guard lock(mutex);
      if (first_error.ok()) first_error = std::move(status);
      return;
    }
  });
  return first_error;
}

// Makes DIR/name through DIR/name.partial.
Status MakeFolder(const std::string& output, const std::string& name, int64_t count, RngKey key,
                  Assignment (*assign)(int64_t, RngKey)) {
  const std::string folder = output + "/" + name, partial = folder + ".partial";
  std::error_code error;
  std::filesystem::remove_all(partial, error);
  if (error) return ErrnoStatus(error.value(), "cannot remove " + partial);
  RT_RETURN_IF_ERROR(MakeDirectories(partial));
  RT_RETURN_IF_ERROR(DrawFolder(partial, count, key, assign));
  std::filesystem::rename(partial, folder, error);
  if (error) return ErrnoStatus(error.value(), "cannot rename " + partial + " to " + folder);
  return OkStatus();
}

Status CheckFree(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return OkStatus();
  return AlreadyExists(folder + " exists; give another --out, or remove it to draw anew");
}

Status CheckCount(std::string_view name, int64_t count, int64_t smallest) {
  if (count >= smallest && count <= kMaxImages) return OkStatus();
  return InvalidArgument(
      fmt::format("{} is {}; it must be from {} to {}", name, count, smallest, kMaxImages));
}

}  // namespace

Status Synthesize(const SynthesizeOptions& options) {
  if (options.output.empty()) return InvalidArgument("no folder to draw into; give --out DIR");
  RT_RETURN_IF_ERROR(CheckCount("--images", options.images, 2));
  RT_RETURN_IF_ERROR(CheckCount("--test-images", options.test_images, 0));
  RT_RETURN_IF_ERROR(CheckFree(options.output + "/train"));
  if (options.test_images > 0) RT_RETURN_IF_ERROR(CheckFree(options.output + "/test1"));
  const int opencv_threads = cv::getNumThreads();
  cv::setNumThreads(1);  // the images are the parallelism
  const RngKey key = RngKey(options.seed).With(kSynthesizeStream);
  Status status = MakeFolder(options.output, "train", options.images, key, TrainImage);
  if (status.ok() && options.test_images > 0) {
    status = MakeFolder(options.output, "test1", options.test_images, key, TestImage);
  }
  cv::setNumThreads(opencv_threads);
  return status;
}

}  // namespace ringtail
