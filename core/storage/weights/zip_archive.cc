#include "core/storage/weights/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/storage/safetensors_header.h"

namespace ringtail {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocalSignature = 0x04034b50, kEntrySignature = 0x02014b50,
                   kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50,
                   kLocator64Signature = 0x07064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocator64Bytes = 20, kMaxCommentBytes = 0xffff;
constexpr uint64_t kIn64 = 0xffffffff;  // the number stands in the ZIP64 extra field
constexpr uint16_t kExtra64 = 1;
constexpr size_t kExtraHeadBytes = 4;  // tag and size of an extra field

// A little-endian number; the caller has checked that it is there.
template <typename T>
T At(Bytes bytes, size_t offset) {
  T value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

bool Fits(Bytes bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

StatusOr<Directory> FindDirectory64(Bytes bytes, size_t end) {
  if (end < kLocator64Bytes || At<uint32_t>(bytes, end - kLocator64Bytes) != kLocator64Signature) {
    return DataLoss("its end record points to a ZIP64 record that is not there");
  }
  const auto at = At<uint64_t>(bytes, end - kLocator64Bytes + 8);
  if (!Fits(bytes, at, kEnd64Bytes) || At<uint32_t>(bytes, at) != kEnd64Signature) {
    return DataLoss("its ZIP64 end record is not where it should be");
  }
  return Directory{.offset = At<uint64_t>(bytes, at + 48),
                   .bytes = At<uint64_t>(bytes, at + 40),
                   .entries = At<uint64_t>(bytes, at + 32)};
}

// The end record is last, before a comment of at most 64 KiB.
StatusOr<Directory> FindDirectory(Bytes bytes) {
  if (bytes.size() < kEndBytes) return DataLoss("it is too short for an archive");
  const size_t first = bytes.size() - std::min(bytes.size(), kEndBytes + kMaxCommentBytes);
  for (size_t end = bytes.size() - kEndBytes + 1; end-- > first;) {
    if (At<uint32_t>(bytes, end) != kEndSignature) continue;
    Directory directory{.offset = At<uint32_t>(bytes, end + 16),
                        .bytes = At<uint32_t>(bytes, end + 12),
                        .entries = At<uint16_t>(bytes, end + 10)};
    if (directory.offset == kIn64 || directory.bytes == kIn64 || directory.entries == 0xffff) {
      return FindDirectory64(bytes, end);
    }
    return directory;
  }
  return DataLoss("the archive has no end record: it is truncated");
}

struct Member {
  std::string name;
  uint64_t offset = 0, packed = 0, size = 0;
  uint16_t flags = 0, method = 0;
};

// Replaces the numbers that do not fit into 32 bits by those of the extra field.
bool Apply64(Bytes extra, Member* member) {
  while (extra.size() >= kExtraHeadBytes) {
    const size_t size = At<uint16_t>(extra, 2);
    if (size > extra.size() - kExtraHeadBytes) return false;
    if (At<uint16_t>(extra, 0) == kExtra64) {
      Bytes numbers = extra.subspan(kExtraHeadBytes, size);
      for (uint64_t* number : {&member->size, &member->packed, &member->offset}) {
        if (*number != kIn64) continue;
        if (numbers.size() < sizeof(uint64_t)) return false;
        *number = At<uint64_t>(numbers, 0);
        numbers = numbers.subspan(sizeof(uint64_t));
      }
      return true;
    }
    extra = extra.subspan(kExtraHeadBytes + size);
  }
  return true;
}

// The entry that `directory` begins with, which is cut off.
std::optional<Member> TakeEntry(Bytes* directory) {
  if (directory->size() < kEntryBytes || At<uint32_t>(*directory, 0) != kEntrySignature) {
    return std::nullopt;
  }
  const size_t name = At<uint16_t>(*directory, 28), extra = At<uint16_t>(*directory, 30),
               comment = At<uint16_t>(*directory, 32);
  if (name + extra + comment > directory->size() - kEntryBytes) return std::nullopt;
  Member member{
      .name = std::string(reinterpret_cast<const char*>(directory->data()) + kEntryBytes, name),
      .offset = At<uint32_t>(*directory, 42),
      .packed = At<uint32_t>(*directory, 20),
      .size = At<uint32_t>(*directory, 24),
      .flags = At<uint16_t>(*directory, 8),
      .method = At<uint16_t>(*directory, 10)};
  if (!Apply64(directory->subspan(kEntryBytes + name, extra), &member)) return std::nullopt;
  *directory = directory->subspan(kEntryBytes + name + extra + comment);
  return member;
}

StatusOr<Bytes> DataOf(const Member& member, Bytes bytes) {
  const auto wrong = [&](std::string_view what) {
    return DataLoss(fmt::format("member {} {}", safetensors::Quoted(member.name), what));
  };
  constexpr uint16_t kEncrypted = 1;
  if ((member.flags & kEncrypted) != 0) return wrong("is encrypted");
  if (member.method != 0) return wrong("is compressed, which PyTorch's never are");
  if (member.packed != member.size) return wrong("has two sizes");
  if (!Fits(bytes, member.offset, kLocalBytes) ||
      At<uint32_t>(bytes, member.offset) != kLocalSignature) {
    return wrong("is not where it should be");
  }
  const uint64_t data = member.offset + kLocalBytes + At<uint16_t>(bytes, member.offset + 26) +
                        At<uint16_t>(bytes, member.offset + 28);
  if (!Fits(bytes, data, member.size)) return wrong("reaches beyond the end of the file");
  return bytes.subspan(data, member.size);
}

}  // namespace

bool LooksLikeZip(Bytes bytes) {
  return bytes.size() >= sizeof(uint32_t) &&
         (At<uint32_t>(bytes, 0) == kLocalSignature || At<uint32_t>(bytes, 0) == kEndSignature);
}

StatusOr<ZipMembers> ParseZip(Bytes bytes) {
  RT_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(bytes));
  if (!Fits(bytes, directory.offset, directory.bytes)) {
    return DataLoss("the directory of the archive is not inside it");
  }
  if (directory.entries > kMaxZipMembers) {
    return DataLoss(fmt::format("the archive claims {} members, more than the {} allowed",
                                directory.entries, kMaxZipMembers));
  }
  ZipMembers members;
  Bytes rest = bytes.subspan(directory.offset, directory.bytes);
  for (uint64_t i = 0; i < directory.entries; ++i) {
    std::optional<Member> member = TakeEntry(&rest);
    if (!member) return DataLoss(fmt::format("entry {} of the archive's directory is damaged", i));
    RT_ASSIGN_OR_RETURN(const Bytes data, DataOf(*member, bytes));
    if (!members.emplace(member->name, data).second) {
      return DataLoss(fmt::format("member {} occurs twice", safetensors::Quoted(member->name)));
    }
  }
  return members;
}

}  // namespace ringtail
