#include "data/layouts/packed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/check.h"
#include "core/storage/crc32c.h"
#include "core/storage/file_descriptor.h"
#include "data/describe.h"
#include "data/image_name.h"
#include "data/layouts/packed_format.h"

namespace ringtail {
namespace {

class PackedDataset : public Dataset {
 public:
  PackedDataset(FileDescriptor file, PackedIndex index, int64_t max_file_bytes)
      : file_(std::move(file)), index_(std::move(index)), max_file_bytes_(max_file_bytes) {}

  const std::vector<Sample>& samples() const override { return index_.samples; }
  const std::vector<std::string>& class_names() const override { return index_.class_names; }
  std::string Describe() const override {
    return fmt::format("packed file {}: {}", EscapeName(file_.path()),
                       DescribeSamples(index_.samples, index_.class_names));
  }

  int64_t FileBytes(int64_t i) const override { return index_.records[i].bytes; }

  StatusOr<std::vector<std::byte>> Read(int64_t i) const override {
    RT_CHECK(i >= 0 && i < static_cast<int64_t>(index_.records.size()), "no such sample");
    const PackedRecord& record = index_.records[i];
    if (record.bytes > max_file_bytes_) {
      return ResourceExhausted(fmt::format("it has {} bytes, more than the {} that are allowed",
                                           record.bytes, max_file_bytes_));
    }
    std::vector<std::byte> bytes(record.bytes);
    RT_ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(record.offset, bytes));
    if (got < bytes.size()) {
      return DataLoss(EscapeName(file_.path()) + " was cut off while it was in use");
    }
    if (Crc32c(bytes) != record.crc32c) {
      return DataLoss(fmt::format("record {} in {} is damaged (wrong checksum); prepare it again",
                                  i, EscapeName(file_.path())));
    }
    return bytes;
  }

 private:
  FileDescriptor file_;
  PackedIndex index_;
  int64_t max_file_bytes_;
};

Status ReadExactly(const FileDescriptor& file, int64_t offset, std::span<std::byte> to) {
  RT_ASSIGN_OR_RETURN(const size_t got, file.ReadAt(offset, to));
  if (got < to.size()) return DataLoss("it was cut off while it was read");
  return OkStatus();
}

StatusOr<PackedIndex> ReadIndex(const FileDescriptor& file) {
  struct stat info {};
  if (fstat(file.number(), &info) != 0) return ErrnoStatus(errno, "cannot look at it");
  if (!S_ISREG(info.st_mode)) return InvalidArgument("it is not a regular file");
  if (info.st_size < kPackedHeaderBytes + kPackedFooterBytes) {
    return DataLoss(fmt::format("{} bytes are too few for a packed file", info.st_size));
  }
  PackedHeaderBytes header;
  PackedFooterBytes footer_bytes;
  const int64_t footer_begin = info.st_size - kPackedFooterBytes;
  RT_RETURN_IF_ERROR(ReadExactly(file, 0, header));
  RT_RETURN_IF_ERROR(ReadExactly(file, footer_begin, footer_bytes));
  RT_ASSIGN_OR_RETURN(const PackedFooter footer, DecodePackedFooter(header, footer_bytes));
  // The index lies within the file, so its allocation is bounded by the file's real size.
  const int64_t room = footer_begin - kPackedHeaderBytes;
  if (footer.index_bytes > static_cast<uint64_t>(std::min(room, kMaxPackedIndexBytes))) {
    return DataLoss(fmt::format("an index of {} bytes does not fit", footer.index_bytes));
  }
  std::vector<std::byte> index(footer.index_bytes);
  const int64_t index_begin = footer_begin - static_cast<int64_t>(footer.index_bytes);
  RT_RETURN_IF_ERROR(ReadExactly(file, index_begin, index));
  return DecodePackedIndex(footer, index, index_begin);
}

}  // namespace

bool IsPackedFile(const std::string& path) {
  const auto file = FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK);
  PackedHeaderBytes header{};
  return file.ok() && file->Read(header).ok() && HasPackedMagic(header);
}

StatusOr<std::unique_ptr<Dataset>> OpenPackedFile(const std::string& path, int32_t max_file_mib) {
  auto file = FileDescriptor::Open(path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return Status(file.status().code(), EscapeName(file.status().message()));
  auto index = ReadIndex(*file);
  if (!index.ok()) return index.status().Annotate("packed file " + EscapeName(path));
  std::unique_ptr<Dataset> dataset = std::make_unique<PackedDataset>(
      *std::move(file), *std::move(index), int64_t{max_file_mib} << 20);
  return dataset;
}

}  // namespace ringtail
