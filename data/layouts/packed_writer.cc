#include "data/layouts/packed_writer.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/check.h"
#include "core/storage/crc32c.h"
#include "core/storage/file.h"
#include "data/decoding/shrink_image.h"
#include "data/layouts/packed_format.h"

namespace ringtail {
namespace {

StatusOr<std::vector<std::byte>> ReadForPacking(const Dataset& dataset, int64_t sample,
                                                const PackedFileOptions& options) {
  auto bytes = dataset.Read(sample);
  if (!bytes.ok()) return bytes.status().Annotate(dataset.samples()[sample].key);
  if (options.short_side == 0) return bytes;
  return ShrinkImage(*std::move(bytes), options.limits, options.short_side, options.jpeg_quality);
}

// Writes one record and adds it to the index.
Status WriteRecord(const FileDescriptor& file, std::span<const std::byte> bytes,
                   const Sample& sample, PackedIndex* index) {
  if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
    return ResourceExhausted(sample.key + ": too large for a packed file");
  }
  RT_RETURN_IF_ERROR(file.Write(bytes));
  index->records.push_back({0, static_cast<uint32_t>(bytes.size()), Crc32c(bytes)});
  index->samples.push_back(sample);
  return OkStatus();
}

Status WriteIndexAndFooter(const FileDescriptor& file, const PackedIndex& index) {
  RT_ASSIGN_OR_RETURN(const std::vector<std::byte> encoded, EncodePackedIndex(index));
  RT_RETURN_IF_ERROR(file.Write(encoded));
  return file.Write(EncodePackedFooter({encoded.size(), index.records.size(), Crc32c(encoded)}));
}

Status CheckOptions(const PackedFileOptions& options) {
  if (options.short_side < 0) {
    return InvalidArgument(fmt::format(
        "short_side is {}; it must be 0 (unchanged) or a number of pixels", options.short_side));
  }
  if (options.jpeg_quality < 1 || options.jpeg_quality > 100) {
    return InvalidArgument(
        fmt::format("jpeg_quality is {}; it must be from 1 to 100", options.jpeg_quality));
  }
  return OkStatus();
}

}  // namespace

Status WritePackedFile(const Dataset& dataset, const std::vector<int64_t>& indices,
                       const PackedFileOptions& options, const std::string& path,
                       const PackProgress& progress) {
  RT_RETURN_IF_ERROR(CheckOptions(options));
  const auto total = static_cast<int64_t>(indices.size());
  return WriteFileAtomic(path, [&](const FileDescriptor& file) -> Status {
    RT_RETURN_IF_ERROR(file.Write(EncodePackedHeader()));
    PackedIndex index;
    index.class_names = dataset.class_names();
    for (int64_t i = 0; i < total; ++i) {
      RT_CHECK(i == 0 || indices[i - 1] < indices[i], "indices to pack must rise");
      RT_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                          ReadForPacking(dataset, indices[i], options));
      RT_RETURN_IF_ERROR(WriteRecord(file, bytes, dataset.samples()[indices[i]], &index));
      if (progress && !progress(i + 1, total)) {
        return Cancelled(fmt::format("stopped after {} of {} images", i + 1, total));
      }
    }
    return WriteIndexAndFooter(file, index);
  });
}

}  // namespace ringtail
